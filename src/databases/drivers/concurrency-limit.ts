import { fail } from '#databases/failures.ts'
import { createSemaphore, type Semaphore } from '#kernel/semaphore.ts'

export type ConcurrencyLimit = Pick<Semaphore, 'acquire' | 'stats'>

type ConcurrencyLimitOptions = {
  readonly places: number
  /** Waiters beyond this number fail at once, instead of queueing for a slow database. */
  readonly waiting: number
  /** Milliseconds. */
  readonly patience: number
}

/** Limits how many run at once to `places`; others wait in order, each at most for `patience`. */
export const createConcurrencyLimit = ({
  places,
  waiting,
  patience,
}: ConcurrencyLimitOptions): ConcurrencyLimit =>
  createSemaphore(places, { max: waiting, patience, refusal: () => fail('client_busy', BUSY) })

const BUSY = { headers: { 'retry-after': '1' } }
