import { createBoundedQueue, type QueueOptions } from './bounded-queue.ts'

/** A bounded number of callers at once; others wait for a place in a bounded queue. */
export type Places = {
  /** Waits for a place; the answer gives it back, once. */
  enter(weight?: number): Promise<() => void>
  /** Throws what a caller would meet now. */
  expectRoom(weight?: number): void
  stats(): { readonly inside: number; readonly waiting: number }
}

export function createPlaces(count: number, options: QueueOptions): Places {
  const queue = createBoundedQueue(options)
  let inside = 0

  /** The next caller takes over the place. */
  function leave(): void {
    const waiting = queue.next()
    if (waiting === undefined) inside--
    else waiting.give()
  }

  function pass(): () => void {
    let hasLeft = false
    return () => {
      if (!hasLeft) leave()
      hasLeft = true
    }
  }

  return {
    async enter(weight) {
      if (inside < count) inside++
      else await queue.wait(undefined, weight)
      return pass()
    },
    expectRoom(weight) {
      if (inside >= count) queue.expectRoom(weight)
    },
    stats: () => ({ inside, waiting: queue.length() }),
  }
}
