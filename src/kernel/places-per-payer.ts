import type { QueueOptions } from './bounded-queue.ts'
import { createPlaces, type Places } from './places.ts'

/** A bounded number of callers at once, of which one payer has half at most, so that none locks out the others. */
export type PlacesPerPayer = {
  /** Waits for a place; the answer gives it back, once. */
  enter(payer: string): Promise<() => void>
}

export function createPlacesPerPayer(count: number, options: QueueOptions): PlacesPerPayer {
  const all = createPlaces(count, options)
  const shares = new Map<string, Places>()

  function shareOf(payer: string): Places {
    let share = shares.get(payer)
    if (share === undefined) {
      share = createPlaces(half(count), { ...options, most: half(options.most) })
      shares.set(payer, share)
    }
    return share
  }

  /** In its own share first: so at most half of those who wait for the places of all are one payer's. */
  async function enter(payer: string): Promise<() => void> {
    const leaveShare = await shareOf(payer).enter()
    try {
      const leaveAll = await all.enter()
      return () => {
        leaveAll()
        forget(payer, leaveShare)
      }
    } catch (error) {
      forget(payer, leaveShare)
      throw error
    }
  }

  function forget(payer: string, leave: () => void): void {
    leave()
    const { inside, waiting } = shareOf(payer).stats()
    if (inside === 0 && waiting === 0) shares.delete(payer)
  }

  return { enter }
}

const half = (count: number): number => Math.floor(count / 2)
