/**
 * Times by key: how often, how long together, and a histogram for percentiles. Bounded: when there are too many keys, the half with the
 * least time together is counted as one, so what takes much time is kept, whatever comes after it.
 */
export type Timings = {
  observe(key: string, milliseconds: number): void
  report(): TimingsReport
}

/** Of one process. Goes from process to process as JSON. */
export type TimingsReport = {
  /** Milliseconds since 1970. */
  readonly since: number
  readonly keys: readonly ReportedTiming[]
  readonly others: Sum
}
type Sum = { readonly count: number; readonly total: number }
type ReportedTiming = Sum & {
  readonly key: string
  readonly max: number
  /** Index and count of each bucket that is not empty. */
  readonly buckets: readonly (readonly [index: number, count: number])[]
}

export type Timing = Sum & {
  readonly key: string
  readonly max: number
  readonly p50: number
  readonly p95: number
}

const MAX_KEYS = 500
/** Milliseconds at the upper end of the first bucket. Each further end is larger by the fourth root of two: an error of at most a tenth. */
const FLOOR = 0.1
const STEPS = 4
/** The last one begins at three minutes. */
const BUCKETS = 86

type Entry = { count: number; total: number; max: number; readonly buckets: Uint32Array }

export function createTimings(since: Date, maxKeys = MAX_KEYS): Timings {
  const entries = new Map<string, Entry>()
  const others = { count: 0, total: 0 }
  const added = (key: string): Entry => {
    if (entries.size >= maxKeys) joinLesserHalf(entries, others)
    const entry = { count: 0, total: 0, max: 0, buckets: new Uint32Array(BUCKETS) }
    entries.set(key, entry)
    return entry
  }
  return {
    observe(key, milliseconds) {
      const entry = entries.get(key) ?? added(key)
      const index = bucketOf(milliseconds)
      entry.count++
      entry.total += milliseconds
      if (milliseconds > entry.max) entry.max = milliseconds
      entry.buckets[index] = (entry.buckets[index] ?? 0) + 1
    },
    report: () => ({
      since: since.getTime(),
      others: { ...others },
      keys: [...entries].map(([key, { count, total, max, buckets }]) => ({
        key,
        count,
        total,
        max,
        buckets: [...buckets].map((count, index) => [index, count] as const).filter(([, count]) => count > 0),
      })),
    }),
  }
}

function joinLesserHalf(entries: Map<string, Entry>, others: { count: number; total: number }): void {
  const sorted = [...entries].sort(([, one], [, other]) => one.total - other.total)
  for (const [key, { count, total }] of sorted.slice(0, Math.ceil(sorted.length / 2))) {
    others.count += count
    others.total += total
    entries.delete(key)
  }
}

const bucketOf = (milliseconds: number): number =>
  milliseconds <= FLOOR ? 0 : Math.min(BUCKETS - 1, Math.ceil(Math.log2(milliseconds / FLOOR) * STEPS))

/** The times of all processes together, by key, in no order. */
export function mergeTimings(reports: readonly TimingsReport[]): {
  readonly since: Date | undefined
  readonly timings: readonly Timing[]
  readonly others: Sum
} {
  const entries = new Map<string, Entry>()
  for (const { key, count, total, max, buckets } of reports.flatMap(({ keys }) => keys)) {
    const entry = entries.get(key) ?? { count: 0, total: 0, max: 0, buckets: new Uint32Array(BUCKETS) }
    entry.count += count
    entry.total += total
    entry.max = Math.max(entry.max, max)
    for (const [index, count] of buckets) entry.buckets[index] = (entry.buckets[index] ?? 0) + count
    entries.set(key, entry)
  }
  return {
    since: reports.length === 0 ? undefined : new Date(Math.min(...reports.map(({ since }) => since))),
    timings: [...entries].map(([key, entry]) => ({
      key,
      count: entry.count,
      total: entry.total,
      max: entry.max,
      p50: percentile(entry, 0.5),
      p95: percentile(entry, 0.95),
    })),
    others: {
      count: reports.reduce((sum, { others }) => sum + others.count, 0),
      total: reports.reduce((sum, { others }) => sum + others.total, 0),
    },
  }
}

/** The upper end of the bucket in which the time of this rank is, and no more than the longest time. */
function percentile({ count, max, buckets }: Entry, share: number): number {
  const rank = Math.ceil(count * share)
  let below = 0
  for (const [index, inBucket] of buckets.entries()) {
    below += inBucket
    if (below >= rank) return index === BUCKETS - 1 ? max : Math.min(max, FLOOR * 2 ** (index / STEPS))
  }
  return max
}
