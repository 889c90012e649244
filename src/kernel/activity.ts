import type { Clock } from './clock.ts'

const SURFACES = ['auth', 'gateway'] as const
const CLASSES = ['2xx', '3xx', '4xx', '5xx'] as const
const ACTS = [
  'sign_ins', 'sign_ins_failed', 'deliveries', 'deliveries_failed', 'deliveries_retried', 'jobs', 'jobs_failed',
] as const // biome-ignore format: one line reads better

export type ActivityAct = (typeof ACTS)[number]
type Surface = (typeof SURFACES)[number]
type RequestName = `${Surface} ${(typeof CLASSES)[number]}`
type CountName = RequestName | ActivityAct

const NAMES: readonly CountName[] = [
  ...SURFACES.flatMap((surface) => CLASSES.map((one) => `${surface} ${one}` as const)),
  ...ACTS,
]
const AT = Object.fromEntries(NAMES.map((name, index) => [name, index])) as Record<CountName, number> // the keys are NAMES

export type ActivityCounts = Readonly<Record<CountName, number>>
/** The counts of one minute, in the order of NAMES. `at`: minutes since 1970. */
type ReportedMinute = { readonly at: number; readonly counts: readonly number[] }
/** The minutes of one process in which something happened. */
export type ActivityReport = readonly ReportedMinute[]

/** Counts of a process for each of the last sixty minutes. In memory, and of one size. */
export type Activity = {
  request(surface: string, status: number): void
  count(act: ActivityAct): void
  report(): ActivityReport
}

export const KEPT_MINUTES = 60
const MINUTE = 60_000

type Slot = { at: number; readonly counts: Uint32Array }

export function createActivity(now: Clock): Activity {
  const ring: Slot[] = Array.from({ length: KEPT_MINUTES }, () => ({
    at: Number.NEGATIVE_INFINITY,
    counts: new Uint32Array(NAMES.length),
  }))
  const add = (index: number): void => {
    const at = Math.floor(now().getTime() / MINUTE)
    const slot = ring[at % KEPT_MINUTES]
    if (slot === undefined) return
    if (slot.at !== at) {
      slot.at = at
      slot.counts.fill(0)
    }
    slot.counts[index] = (slot.counts[index] ?? 0) + 1
  }
  return {
    request(surface, status) {
      const hundreds = Math.floor(status / 100)
      const index = hundreds - 2 + (surface === 'auth' ? 0 : CLASSES.length)
      if (hundreds >= 2 && hundreds <= 5) add(index)
    },
    count: (act) => add(AT[act]),
    report() {
      const first = firstMinute(now())
      return ring.filter(({ at }) => at >= first).map(({ at, counts }) => ({ at, counts: [...counts] }))
    },
  }
}

const firstMinute = (now: Date): number => Math.floor(now.getTime() / MINUTE) - KEPT_MINUTES + 1

export type ActivityOfMinute = { readonly at: Date; readonly counts: ActivityCounts }

/** The last sixty minutes of all processes, oldest first, and their sum. The present minute is the last. */
export function lastHour(
  reports: readonly ActivityReport[],
  now: Date,
): { readonly minutes: readonly ActivityOfMinute[]; readonly total: ActivityCounts } {
  const first = firstMinute(now)
  const sums = Array.from({ length: KEPT_MINUTES }, () => NAMES.map(() => 0))
  const total = NAMES.map(() => 0)
  for (const { at, counts } of reports.flat())
    counts.forEach((count, index) => {
      const sum = sums[at - first]
      if (sum === undefined) return
      sum[index] = (sum[index] ?? 0) + count
      total[index] = (total[index] ?? 0) + count
    })
  const minutes = sums.map((sum, index) => ({
    at: new Date((first + index) * MINUTE),
    counts: countsOf(sum),
  }))
  return { minutes, total: countsOf(total) }
}

const countsOf = (counts: readonly number[]): ActivityCounts =>
  Object.fromEntries(NAMES.map((name, index) => [name, counts[index] ?? 0])) as ActivityCounts // the keys are NAMES
