import type { QueueOptions } from './bounded-queue.ts'
import { createSemaphore, type Semaphore } from './semaphore.ts'

/**
 * A semaphore of which one key has half at most, so that none locks out the others. With several keys, each has half of what the next one
 * has.
 */
type KeyedSemaphore = {
  /** Waits for its turn; the answer releases it, once. The key with the smallest share comes first. */
  acquire(...keys: readonly string[]): Promise<() => void>
}

export function createKeyedSemaphore(count: number, options: QueueOptions): KeyedSemaphore {
  const all = createSemaphore(count, options)
  const shares = new Map<string, Semaphore>()

  async function acquireShare(key: string, part: number): Promise<() => void> {
    const name = `${part} ${key}`
    const share = shares.get(name) ?? createShare(part)
    shares.set(name, share)
    const release = await share.acquire()
    return () => {
      release()
      const { active, waiting } = share.stats()
      if (active === 0 && waiting === 0 && shares.get(name) === share) shares.delete(name)
    }
  }

  const createShare = (part: number): Semaphore =>
    createSemaphore(Math.floor(count / part), { ...options, max: Math.floor(options.max / part) })

  return {
    /** The shares first: so at most half of those who wait for the semaphore of all have one key. */
    async acquire(...keys) {
      const releases: (() => void)[] = []
      const release = () => {
        for (const releaseOne of releases) releaseOne()
      }
      try {
        for (const [index, key] of keys.entries())
          releases.unshift(await acquireShare(key, 2 ** (keys.length - index)))
        releases.unshift(await all.acquire())
        return release
      } catch (error) {
        release()
        throw error
      }
    },
  }
}
