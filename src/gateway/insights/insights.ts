import { type ActivityCounts, lastHour } from '#kernel/activity.ts'
import { listSettings } from '#kernel/config/config.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Figures } from '#kernel/metrics.ts'
import { mergeTimings, type Timing } from '#kernel/timings.ts'
import { planOfKey } from '../plan-key.ts'

export const settingsOf = ({ config }: Pick<Kernel, 'config'>) =>
  listSettings(config).map(({ setting, value, default: usual, absent, source, isSecret }) => ({
    setting,
    value: value ?? null,
    default: usual ?? null,
    absent: absent ?? null,
    source,
    is_secret: isSecret,
  }))

export function activityOf({ now }: Pick<Kernel, 'now'>, all: readonly Figures[]) {
  const to = now()
  const { minutes, total } = lastHour(
    all.map(({ activity }) => activity),
    to,
  )
  return {
    from: minutes[0]?.at ?? to,
    to,
    total: shown(total),
    minutes: minutes.map(({ at, counts }) => ({ at, ...shown(counts) })),
  }
}

const shown = (counts: ActivityCounts) => ({
  requests: { auth: responses(counts, 'auth'), gateway: responses(counts, 'gateway') },
  sign_ins: { succeeded: counts.sign_ins, failed: counts.sign_ins_failed },
  deliveries: {
    succeeded: counts.deliveries,
    failed: counts.deliveries_failed,
    retried: counts.deliveries_retried,
  },
  jobs: { done: counts.jobs, failed: counts.jobs_failed },
})

const responses = (counts: ActivityCounts, surface: 'auth' | 'gateway') => ({
  '2xx': counts[`${surface} 2xx`],
  '3xx': counts[`${surface} 3xx`],
  '4xx': counts[`${surface} 4xx`],
  '5xx': counts[`${surface} 5xx`],
})

export const STATEMENT_ORDERS = ['p95', 'p50', 'max', 'total', 'count'] as const

type Wanted = {
  readonly sort?: (typeof STATEMENT_ORDERS)[number]
  readonly limit?: number
  readonly client_name?: string
}

/** The slowest first. */
export function slowestStatements({ now }: Pick<Kernel, 'now'>, all: readonly Figures[], wanted: Wanted) {
  const { sort = 'p95', limit = 50, client_name } = wanted
  const { since, timings, others } = mergeTimings(all.map(({ statements }) => statements))
  const statements = timings
    .toSorted((one, other) => other[sort] - one[sort])
    .map((timing) => ({ ...planOfKey(timing.key), ...measured(timing) }))
    .filter(({ client }) => client_name === undefined || client === client_name)
  return {
    since: since ?? now(),
    statements: statements.slice(0, limit),
    others: { count: others.count, total_ms: rounded(others.total) },
  }
}

const measured = ({ count, p50, p95, max, total }: Timing) => ({
  count,
  p50_ms: rounded(p50),
  p95_ms: rounded(p95),
  max_ms: rounded(max),
  total_ms: rounded(total),
})

/** To a hundredth of a millisecond. */
const rounded = (milliseconds: number): number => Math.round(milliseconds * 100) / 100
