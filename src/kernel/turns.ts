import type { QueueOptions } from './bounded-queue.ts'
import { createSemaphore, type Semaphore } from './semaphore.ts'

/** Runs the work of each key one after the other: in a queue behind it, keys take turns, however much one of them asks for. */
type Turns = {
  run<T>(key: string, work: () => Promise<T>): Promise<T>
}

export function createTurns(options: QueueOptions): Turns {
  const byKey = new Map<string, Semaphore>()
  return {
    async run(key, work) {
      const own = byKey.get(key) ?? createSemaphore(1, options)
      byKey.set(key, own)
      try {
        return await own.run(work)
      } finally {
        const { active, waiting } = own.stats()
        if (active === 0 && waiting === 0 && byKey.get(key) === own) byKey.delete(key)
      }
    },
  }
}
