import { edge, retryAfter } from './http/failures.ts'

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
  let active = 0
  const line: { readonly start: () => void; readonly weight: number }[] = []
  let waits = 0
  const expectRoom = (weight = 1): void => {
    if (active < running || waits + weight <= waiting) return
    onRefusal()
    throw tooBusy()
  }
  const queue = async <T>(work: () => Promise<T>, weight = 1): Promise<T> => {
    expectRoom(weight)
    if (active >= running) {
      waits += weight
      await new Promise<void>((start) => line.push({ start, weight }))
    } else {
      active++
    }
    try {
      return await work()
    } finally {
      const next = line.shift()
      // The next one takes this place.
      if (next === undefined) active--
      else {
        waits -= next.weight
        next.start()
      }
    }
  }
  return Object.assign(queue, { expectRoom: () => expectRoom(), depth: () => line.length })
}

const tooBusy = () =>
  edge('service_unavailable', {
    message: 'Too many sign-ins at once; try again in a moment',
    headers: retryAfter(1),
  })
