import { createBoundedQueue, type QueueOptions } from './bounded-queue.ts'

/** Bounds how many hold it at once; others wait in a bounded queue. */
export type Semaphore = {
  /** Waits for its turn and runs the work. */
  run<T>(work: () => Promise<T>, weight?: number): Promise<T>
  /** Waits for its turn; the answer releases it, once. */
  acquire(weight?: number): Promise<() => void>
  /** Throws what a caller would meet now. */
  expectRoom(weight?: number): void
  stats(): { readonly active: number; readonly waiting: number }
}

export function createSemaphore(count: number, options: QueueOptions): Semaphore {
  const queue = createBoundedQueue(options)
  let active = 0

  async function acquire(weight?: number): Promise<() => void> {
    if (active < count) active++
    else await queue.wait(undefined, weight)
    let isReleased = false
    return () => {
      if (!isReleased) release()
      isReleased = true
    }
  }

  /** The next caller takes over. */
  function release(): void {
    const waiting = queue.next()
    if (waiting === undefined) active--
    else waiting.give()
  }

  return {
    acquire,
    async run(work, weight) {
      const release = await acquire(weight)
      try {
        return await work()
      } finally {
        release()
      }
    },
    expectRoom(weight) {
      if (active >= count) queue.expectRoom(weight)
    },
    stats: () => ({ active, waiting: queue.length() }),
  }
}
