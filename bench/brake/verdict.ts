import { bootstrap, type Interval, median, ratios } from '../statistics.ts'

/** Processor µs a request of one scenario, by round. `again` is a second process of the same state. */
export type Sample = {
  readonly ours: readonly number[]
  readonly again: readonly number[]
  readonly others: Readonly<Record<string, readonly number[]>>
}

export type Judged = {
  /** The second process to the first one: 1 on a quiet machine. */
  readonly control: number
  /** Whether the two processes agree, and rounds that say dearer agree about it. */
  readonly isMeasurable: boolean
  /** Ours to each of the others. */
  readonly ratios: Readonly<Record<string, Interval>>
  /** Names of the others that ours is dearer than by more than TOLERANCE. */
  readonly dearer: readonly string[]
}

export const TOLERANCE = 0.1
/** How far two processes of the same state may differ. */
export const CONTROL = 0.04

const SEED = 1

export function judge({ ours, again, others }: Sample): Judged {
  const control = median(ratios(again, ours))
  // Both processes are ours; their mean halves what chance gives to one process for all of its life, such as the layout of its memory.
  const both = ours.map((value, round) => (value + (again[round] ?? Number.NaN)) / 2)
  const all = Object.entries(others).map(
    ([name, theirs]) => [name, bootstrap(ratios(both, theirs), SEED)] as const,
  )
  const dearer = all.filter(([, { middle }]) => middle > 1 + TOLERANCE)
  const isCertain = dearer.every(([, { low }]) => low > 1 + TOLERANCE / 2)
  return {
    control,
    isMeasurable: isCertain && Math.abs(Math.log(control)) <= Math.log(1 + CONTROL),
    ratios: Object.fromEntries(all),
    dearer: dearer.map(([name]) => name),
  }
}

export type Verdict = 'passed' | 'dearer' | 'not measurable'

/**
 * The verdict after some attempts, each with new processes: undefined if another attempt is needed. One measurable attempt passes, two
 * condemn, so that a disturbance that hits one side alone does not.
 */
export function verdictOf(attempts: readonly Judged[], most: number): Verdict | undefined {
  const measurable = attempts.filter(({ isMeasurable }) => isMeasurable)
  if (measurable.some(({ dearer }) => dearer.length === 0)) return 'passed'
  if (measurable.length >= 2) return 'dearer'
  if (attempts.length < most) return undefined
  return 'not measurable'
}
