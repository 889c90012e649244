import type { QueueOptions } from './bounded-queue.ts'
import { createSemaphore, type Semaphore } from './semaphore.ts'

type Release = () => void

/** A semaphore for each key, as long as it is held or awaited. */
type Semaphores = {
  /** Waits for its turn in the semaphore of the key, which `create` makes; the answer releases it, once. */
  acquire(key: string, create: () => Semaphore): Promise<Release>
}

export function createSemaphores(): Semaphores {
  const byKey = new Map<string, Semaphore>()
  return {
    async acquire(key, create) {
      const semaphore = byKey.get(key) ?? create()
      byKey.set(key, semaphore)
      const forget = () => {
        const { active, waiting } = semaphore.stats()
        if (active === 0 && waiting === 0 && byKey.get(key) === semaphore) byKey.delete(key)
      }
      try {
        const release = await semaphore.acquire()
        return () => {
          release()
          forget()
        }
      } catch (error) {
        forget()
        throw error
      }
    },
  }
}

/** Waits for one after the other; the answer releases all, the last first. None is held when one is refused. */
export async function acquireAll(turns: readonly (() => Promise<Release>)[]): Promise<Release> {
  const releases: Release[] = []
  const release = () => {
    for (const releaseOne of releases) releaseOne()
  }
  try {
    for (const turn of turns) releases.unshift(await turn())
    return release
  } catch (error) {
    release()
    throw error
  }
}

/**
 * A semaphore of which one key has a part at most, half of it by default, so that none locks out the others. With several keys, each has
 * that part of what the next one has.
 */
export type KeyedSemaphore = {
  /** Waits for its turn; the answer releases it, once. The key with the smallest share comes first. */
  acquire(...keys: readonly string[]): Promise<Release>
}

type KeyedOptions = QueueOptions & {
  /** One key has at most 1/`parts`. */
  readonly parts?: number
}

export function createKeyedSemaphore(count: number, { parts = 2, ...options }: KeyedOptions): KeyedSemaphore {
  const all = createSemaphore(count, options)
  const shares = createSemaphores()
  const createShare = (part: number): Semaphore =>
    createSemaphore(Math.floor(count / part), { ...options, max: Math.floor(options.max / part) })
  const shareOf = (key: string, part: number) => () =>
    shares.acquire(`${part} ${key}`, () => createShare(part))
  return {
    /** The shares first: so at most that part of those who wait for the semaphore of all has one key. */
    acquire: (...keys) =>
      acquireAll([
        ...keys.map((key, index) => shareOf(key, parts ** (keys.length - index))),
        () => all.acquire(),
      ]),
  }
}
