import { edge, retryAfter } from './http/failures.ts'
import { createSemaphore } from './semaphore.ts'

/**
 * Runs work that keeps a processor busy: `running` at once, `waiting` in line, and beyond that 503. So a flood of
 * sign-ins uses a bounded number of processors, and every other endpoint stays fast. Work of unequal length has a
 * weight, in the unit of `waiting`.
 */
export type WorkQueue = {
  <T>(work: () => Promise<T>, weight?: number): Promise<T>
  /** Throws the 503 when there is no room now: for a check before the queries that prepare the work. */
  readonly expectRoom: () => void
  /** The number that waits now. */
  readonly depth: () => number
}

export function createWorkQueue(running: number, waiting: number, onRefusal: () => void): WorkQueue {
  const refusal = () => {
    onRefusal()
    return tooBusy()
  }
  const semaphore = createSemaphore(running, { max: waiting, refusal })
  const queue = <T>(work: () => Promise<T>, weight?: number): Promise<T> => semaphore.run(work, weight)
  return Object.assign(queue, {
    expectRoom: () => semaphore.expectRoom(),
    depth: () => semaphore.stats().waiting,
  })
}

const tooBusy = () =>
  edge('service_unavailable', {
    message: 'Too many sign-ins at once; try again in a moment',
    headers: retryAfter(1),
  })
