import type pg from 'pg'
import type { Clock } from './clock.ts'
import { systemClock } from './clock.ts'
import type { Config } from './config/config.ts'
import { startCoherence } from './db/coherence.ts'
import { connect } from './db/connect.ts'
import { keyedConnections } from './db/keyed.ts'
import { MigrationError, pendingMigrations } from './db/migrate.ts'
import { createEvents } from './events.ts'
import { boundedWork } from './heavy.ts'
import { rateLimits } from './http/limits.ts'
import { outboundRequests } from './http/outbound.ts'
import { startJobs } from './jobs.ts'
import type { Kernel } from './kernel.ts'
import type { Log } from './log.ts'
import { createMetrics } from './metrics.ts'
import { type Random, secureRandom, uuidv7 } from './random.ts'
import type { Secrets } from './secrets.ts'

export type KernelOptions = {
  readonly config: Config
  readonly controlUrl: string
  readonly secrets: Secrets
  readonly log: Log
  readonly now?: Clock
  readonly random?: Random
}

export type StartedKernel = {
  readonly kernel: Kernel
  /** Tells the port that was found, for `publicUrl`. */
  setPort(port: number): void
  close(): Promise<void>
}

/** Opens everything that a kernel holds; the schema must be there. */
export async function startKernel(options: KernelOptions): Promise<StartedKernel> {
  const { config, controlUrl: url, log, now = systemClock, random = secureRandom, secrets } = options
  const metrics = createMetrics()
  const onError = (error: Error) =>
    log.warn({ event: 'control_connection_lost', error }, 'an idle connection to the control database broke')
  const statementTimeout = config.limits.timeout
  const control = connect({ url, max: config.database.max_connections, statementTimeout, onError })
  const counters = connect({ url, max: COUNTER_CONNECTIONS, statementTimeout, onError })
  await expectSchema(control.pool)
  const id = uuidv7(now(), random)
  const coherence = await startCoherence({ url, pool: control.pool, id, log })
  const keyed = keyedConnections(url, KEYED_CONNECTIONS, KEYED_TIMEOUT)
  const jobs = await startJobs({ url, log, migrate: config.database.migrate })
  const outbound = outboundRequests(config)
  const events = createEvents()
  events.subscribe((name) => metrics.event(name))
  const onFullQueue = () => metrics.count('gatehouse_password_queue_full_total')
  let port = config.server.port
  const kernel: Kernel = {
    config,
    db: control.db,
    keyed,
    heavy: boundedWork(config.auth.password.concurrency, config.auth.password.queue, onFullQueue),
    foreignHashes: boundedWork(1, FOREIGN_WAIT, onFullQueue),
    coherence,
    now,
    random,
    secrets,
    jobs,
    events,
    limits: rateLimits(config, counters.pool),
    outbound,
    metrics,
    log,
    publicUrl: () => config.server.public_url ?? `http://localhost:${port}`,
    afterCommit: (work) => work(),
  }
  metrics.gauge('gatehouse_control_connections', 'Connections of the control pool', ['state'], () => [
    { labels: { state: 'idle' }, value: control.pool.idleCount },
    { labels: { state: 'busy' }, value: control.pool.totalCount - control.pool.idleCount },
    { labels: { state: 'waiting' }, value: control.pool.waitingCount },
  ])
  return {
    kernel,
    setPort: (value) => {
      port = value
    },
    async close() {
      kernel.limits.close()
      await jobs.stop()
      await outbound.close()
      await coherence.close()
      await keyed.close()
      await counters.close()
      await control.close()
    },
  }
}

/** A keyed statement that takes longer than this meets a database in trouble, milliseconds. */
const KEYED_TIMEOUT = 5_000
/** What may wait in front of a hash of another system, milliseconds of work. */
const FOREIGN_WAIT = 10_000
/** Two, so that one that breaks does not stop everything. */
const KEYED_CONNECTIONS = 2
/**
 * Of the rate limits, whose statements are asked inside transactions too: a transaction that waited for a second connection
 * of its own pool could wait for others that do the same.
 */
const COUNTER_CONNECTIONS = 3

/** Says what to do about a database that nobody has migrated, before anything stumbles over it. */
export async function expectSchema(pool: pg.Pool): Promise<void> {
  const pending = await pendingMigrations((text) => pool.query(text))
  if (pending.length === 0) return
  throw new MigrationError(
    `The control database lacks ${pending.join(', ')}: run gatehouse migrate, or set database.migrate to true.`,
  )
}
