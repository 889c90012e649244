import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { type Activity, type ActivityAct, type ActivityReport, createActivity } from './activity.ts'
import type { Clock } from './clock.ts'
import { memoryParts } from './memory-parts.ts'
import { withTimeout } from './timeout.ts'
import { createTimings, type Timings, type TimingsReport } from './timings.ts'

export type Metrics = {
  readonly registry: Registry
  request(facts: { surface: string; route: string; method: string; status: number; seconds: number }): void
  event(name: string): void
  /** A value that is read whenever the metrics are scraped. */
  gauge(
    name: string,
    help: string,
    labels: readonly string[],
    collect: () => Promise<MetricValue[]> | MetricValue[],
  ): void
  count(name: CounterName): void
  /** A call of a hook of the settings. */
  hook(facts: { hook: string; outcome: 'allowed' | 'refused' | 'failed'; seconds: number }): void
  /** Of the statements on clients, by plan. */
  readonly statements: Timings
  /** The counts beside the registry: the last hour by minute, and the statements. */
  figures(): Figures
}

/** Of one process. */
export type Figures = { readonly activity: ActivityReport; readonly statements: TimingsReport }

type MetricValue = { readonly labels: Record<string, string>; readonly value: number }

const COUNTERS = {
  gatehouse_password_queue_full_total: 'Password hashes refused because the queue was full',
  gatehouse_events_lost_total: 'Events of committed operations that could not be written to the outbox',
  gatehouse_audit_events_lost_total:
    'Committed changes of a structure that could not be written to the audit trail',
  gatehouse_webhook_deliveries_succeeded_total: 'Deliveries of webhooks that the endpoint has accepted',
  gatehouse_webhook_deliveries_failed_total: 'Deliveries of webhooks that have failed for good',
  gatehouse_webhook_attempts_failed_total: 'Attempts of webhooks that have failed and are made again',
  gatehouse_pipeline_log_failures_total: 'Failed attempts to write the steps of a pipeline run to the log',
  gatehouse_sign_ins_failed_total: 'Refused ways of signing in, as in the audit trail',
  gatehouse_jobs_done_total: 'Jobs of the queue that are done',
  gatehouse_jobs_failed_total: 'Jobs of the queue that have failed and are tried again',
  gatehouse_bodies_refused_total: 'Bodies of requests refused because limits.bodies was used up',
} as const
type CounterName = keyof typeof COUNTERS

/** The counters and events that the last hour shows too. */
const ACTS: Readonly<Record<string, ActivityAct>> = {
  auth_user_signed_in: 'sign_ins',
  gatehouse_sign_ins_failed_total: 'sign_ins_failed',
  gatehouse_webhook_deliveries_succeeded_total: 'deliveries',
  gatehouse_webhook_deliveries_failed_total: 'deliveries_failed',
  gatehouse_webhook_attempts_failed_total: 'deliveries_retried',
  gatehouse_jobs_done_total: 'jobs',
  gatehouse_jobs_failed_total: 'jobs_failed',
}

export function createMetrics(now: Clock): Metrics {
  const activity: Activity = createActivity(now)
  const statements = createTimings(now())
  const act = (name: string): void => {
    const counted = ACTS[name]
    if (counted !== undefined) activity.count(counted)
  }
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const requests = new Counter({
    name: 'gatehouse_http_requests_total',
    help: 'Requests answered, by route and status',
    labelNames: ['surface', 'route', 'method', 'status'],
    registers: [registry],
  })
  const latency = new Histogram({
    name: 'gatehouse_http_request_duration_seconds',
    help: 'Time from the request line to the last byte handed to the socket',
    labelNames: ['surface', 'route', 'method'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [registry],
  })
  const events = new Counter({
    name: 'gatehouse_events_total',
    help: 'Events emitted, by name',
    labelNames: ['event'],
    registers: [registry],
  })
  const hookCalls = new Counter({
    name: 'gatehouse_hook_calls_total',
    help: 'Calls of hooks, by outcome',
    labelNames: ['hook', 'outcome'],
    registers: [registry],
  })
  const hookLatency = new Histogram({
    name: 'gatehouse_hook_duration_seconds',
    help: 'Time in which hooks have answered or failed, with the wait for a turn',
    labelNames: ['hook'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  })
  const counters = Object.fromEntries(
    Object.entries(COUNTERS).map(([name, help]) => [
      name,
      new Counter({ name, help, registers: [registry] }),
    ]),
  ) as Record<CounterName, Counter> // the keys are COUNTERS' own

  const memory = new Gauge({
    name: 'gatehouse_memory_bytes',
    help: 'Resident memory, by what it is made of',
    labelNames: ['part'],
    registers: [registry],
    collect() {
      memory.reset()
      for (const [part, bytes] of Object.entries(memoryParts() ?? {})) memory.set({ part }, bytes)
    },
  })

  return {
    registry,
    request({ surface, route, method, status, seconds }) {
      requests.inc({ surface, route, method, status: String(status) })
      latency.observe({ surface, route, method }, seconds)
      activity.request(surface, status)
    },
    event(event) {
      events.inc({ event })
      act(event)
    },
    count(name) {
      counters[name].inc()
      act(name)
    },
    hook({ hook, outcome, seconds }) {
      hookCalls.inc({ hook, outcome })
      hookLatency.observe({ hook }, seconds)
    },
    statements,
    figures: () => ({ activity: activity.report(), statements: statements.report() }),
    gauge(name, help, labels, collect) {
      new Gauge({
        name,
        help,
        labelNames: [...labels],
        registers: [registry],
        async collect() {
          this.reset()
          for (const { labels, value } of await valuesOf(collect)) this.set(labels, value)
        },
      })
    },
  }
}

/** Longest time that a gauge may take to read its values, milliseconds. */
const PATIENCE = 2_000

/** A source that fails or is silent has no reading. The other gauges are most useful at such a time. */
const valuesOf = (collect: () => Promise<MetricValue[]> | MetricValue[]): Promise<MetricValue[]> =>
  withTimeout(Promise.resolve().then(collect), PATIENCE, () => []).catch(() => [])
