import { MAX_PER_WEBHOOK } from './store.ts'

/**
 * `quick`: the last answer took at most half a second, or there was none yet. `unhurried`: it took longer. `silent`: the last attempt had no
 * answer, or one takes much longer than usual.
 */
export type Pace = 'quick' | 'unhurried' | 'silent'

/** The lanes of each pace, and the claims that they hold. Lanes count themselves. */
export type Tally = Readonly<Record<Pace, { lanes: number; held: number }>>

export const createTally = (): Tally => ({
  quick: { lanes: 0, held: 0 },
  unhurried: { lanes: 0, held: 0 },
  silent: { lanes: 0, held: 0 },
})

/** Requests of this process to one endpoint at once (gateway.md 12). */
export const MAX_IN_FLIGHT = 10

/**
 * Claims that a process holds at once, by pace, which bounds its memory. Lanes divide the places of their own pace and take none of the
 * others. An unhurried lane always has one, so that an endpoint that answers never waits for others.
 */
const PLACES = { quick: 600, unhurried: 600, silent: 128 } as const

/** A lane that claims ahead asks when half of that is used up. */
const AHEAD = MAX_PER_WEBHOOK / 2

type Claimer = {
  readonly pace: Pace
  readonly held: number
  /** Its last attempt succeeded, so the next requests need not wait for a statement. */
  readonly claimsAhead: boolean
}

/** The number of deliveries that a lane may claim now. */
export function roomFor({ pace, held, claimsAhead }: Claimer, tally: Tally): number {
  if (!claimsAhead) return Math.max(0, Math.min(MAX_IN_FLIGHT, shareOf(pace, tally)) - held)
  const room = MAX_PER_WEBHOOK - held
  return room >= AHEAD ? room : 0
}

function shareOf(pace: Pace, tally: Tally): number {
  // Many new endpoints may be silent: then each gets one event to show whether it is.
  if (pace === 'quick') return tally.silent.held < PLACES.silent ? MAX_IN_FLIGHT : 1
  return Math.max(1, Math.floor(PLACES[pace] / tally[pace].lanes))
}

/** The number that all lanes of each pace may claim together. Unhurried ones have their shares. */
export const placesLeft = (tally: Tally): Record<Pace, number> => ({
  quick: PLACES.quick - tally.quick.held,
  unhurried: Number.POSITIVE_INFINITY,
  silent: PLACES.silent - tally.silent.held,
})
