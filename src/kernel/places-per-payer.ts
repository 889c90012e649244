import type { QueueOptions } from './bounded-queue.ts'
import { createPlaces, type Places } from './places.ts'

/**
 * A bounded number of callers at once, of which one payer has half at most, so that none locks out the others. With several payers, each
 * has half of what the next one has.
 */
export type PlacesPerPayer = {
  /** Waits for a place; the answer gives it back, once. The payer with the smallest share comes first. */
  enter(...payers: readonly string[]): Promise<() => void>
}

export function createPlacesPerPayer(count: number, options: QueueOptions): PlacesPerPayer {
  const all = createPlaces(count, options)
  const shares = new Map<string, Places>()

  async function enterShare(payer: string, part: number): Promise<() => void> {
    const name = `${part} ${payer}`
    const share = shares.get(name) ?? createShare(part)
    shares.set(name, share)
    const leave = await share.enter()
    return () => {
      leave()
      const { inside, waiting } = share.stats()
      if (inside === 0 && waiting === 0 && shares.get(name) === share) shares.delete(name)
    }
  }

  const createShare = (part: number): Places =>
    createPlaces(Math.floor(count / part), { ...options, max: Math.floor(options.max / part) })

  return {
    /** In the own shares first: so at most half of those who wait for the places of all are one payer's. */
    async enter(...payers) {
      const leaves: (() => void)[] = []
      const leave = () => {
        for (const leaveOne of leaves) leaveOne()
      }
      try {
        for (const [index, payer] of payers.entries())
          leaves.unshift(await enterShare(payer, 2 ** (payers.length - index)))
        leaves.unshift(await all.enter())
        return leave
      } catch (error) {
        leave()
        throw error
      }
    },
  }
}
