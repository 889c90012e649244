import type { AttemptResult } from './attempt.ts'
import { type ClaimedDelivery, type ClaimRequest, MAX_PER_WEBHOOK } from './store.ts'

/** The deliveries to one webhook that this process has claimed. */
export type Lane = {
  readonly webhookId: string
  /** Claimed, and not yet begun. */
  readonly waiting: ClaimedDelivery[]
  /** Requests that the endpoint has not answered. */
  inFlight: number
  /** Claimed, until the outcome is written. */
  held: number
  pace: Pace
  /** The endpoint has accepted an event, as far as this process remembers. */
  isProven: boolean
  /** Milliseconds that its last answer took. */
  usualMs: number
  /** Failed attempts in a row, as this process has seen them. */
  failures: number
  /** By performance.now(): no claims before. */
  pausedUntil: number
  /** Looks for due deliveries at its time. */
  timer: { readonly at: number; readonly handle: NodeJS.Timeout } | undefined
}

/**
 * `quick`: the last answer took at most half a second, or there was none yet. `unhurried`: it took longer. `silent`: the last attempt had no
 * answer, or one takes much longer than usual.
 */
type Pace = 'quick' | 'unhurried' | 'silent'

/** Requests of this process to one endpoint at once (gateway.md 12). */
export const MAX_IN_FLIGHT = 10

/**
 * Claims that a process holds at once, by pace, which bounds its memory. Lanes divide the places of their own pace and take none of the
 * others. An unhurried lane always has one, so that an endpoint that answers never waits for others.
 */
const PLACES = { quick: 600, unhurried: 600, silent: 128 } as const

/** A quick answer takes at most so long, milliseconds. */
const QUICK_MS = 500

/** A quick lane claims ahead, so that the next requests need not wait for a statement. It asks when half of that is used up. */
const AHEAD = MAX_PER_WEBHOOK / 2

/** After so many failures in a row a lane makes at most 10 attempts a second, until one succeeds. */
const PAUSING_FAILURES = 10
const PAUSE = 1_000

/** Webhooks in one claim. */
const MAX_LANES = 100

export type Lanes = {
  of(webhookId: string): Lane
  /** The next claim, in turn; empty when no lane has both room and perhaps due deliveries. */
  requests(): readonly ClaimRequest[]
  /** There may be due deliveries. */
  mark(webhookId: string): void
  hold(lane: Lane, count: number): void
  /** An attempt takes longer than its patience: the endpoint may never answer, and must not keep its places until then. */
  suspect(lane: Lane): void
  /** Remembers how the endpoint does. */
  learn(lane: Lane, attempt: Pick<AttemptResult, 'isSuccess' | 'responseStatus' | 'durationMs'>): void
  all(): Iterable<Lane>
  /** Forgets lanes without claims. */
  sweep(): void
}

export function createLanes(): Lanes {
  const lanes = new Map<string, Lane>()
  /** Lanes that may have due deliveries, in the order of their turns. */
  const marked = new Set<Lane>()
  const held = { quick: 0, unhurried: 0, silent: 0 }
  const count = { quick: 0, unhurried: 0, silent: 0 }

  function of(webhookId: string): Lane {
    let lane = lanes.get(webhookId)
    if (lane === undefined) {
      lane = newLane(webhookId)
      lanes.set(webhookId, lane)
      count[lane.pace]++
    }
    return lane
  }

  function hold(lane: Lane, number: number): void {
    lane.held += number
    held[lane.pace] += number
  }

  function setPace(lane: Lane, pace: Pace): void {
    held[lane.pace] -= lane.held
    count[lane.pace]--
    lane.pace = pace
    held[pace] += lane.held
    count[pace]++
  }

  /** The number of deliveries that the lane may claim now. */
  function roomOf(lane: Lane): number {
    if (performance.now() < lane.pausedUntil) return 0
    if (lane.pace === 'quick' && lane.isProven) {
      const room = MAX_PER_WEBHOOK - lane.held
      return room >= AHEAD ? room : 0
    }
    return Math.max(0, Math.min(MAX_IN_FLIGHT, shareOf(lane)) - lane.held)
  }

  /** The places that a lane has which may not claim ahead. */
  function shareOf({ pace }: Lane): number {
    // Many new endpoints may be silent: then each gets one event to show whether it is.
    if (pace === 'quick') return held.silent < PLACES.silent ? MAX_IN_FLIGHT : 1
    return Math.max(1, Math.floor(PLACES[pace] / count[pace]))
  }

  return {
    of,
    hold,
    all: () => lanes.values(),
    mark: (webhookId) => void marked.add(of(webhookId)),
    requests() {
      const left = {
        quick: PLACES.quick - held.quick,
        unhurried: Number.POSITIVE_INFINITY,
        silent: PLACES.silent - held.silent,
      }
      const asked: ClaimRequest[] = []
      for (const lane of marked) {
        if (asked.length === MAX_LANES) break
        const free = Math.min(roomOf(lane), left[lane.pace])
        if (free <= 0) continue
        left[lane.pace] -= free
        marked.delete(lane)
        asked.push({ webhookId: lane.webhookId, free })
      }
      return asked
    },
    suspect: (lane) => setPace(lane, 'silent'),
    learn(lane, { isSuccess, responseStatus, durationMs }) {
      lane.failures = isSuccess ? 0 : lane.failures + 1
      if (lane.failures >= PAUSING_FAILURES) lane.pausedUntil = performance.now() + PAUSE
      lane.isProven = isSuccess
      if (responseStatus !== null) lane.usualMs = durationMs
      // A refused connection takes no place for long.
      if (durationMs <= QUICK_MS) setPace(lane, 'quick')
      else setPace(lane, responseStatus === null ? 'silent' : 'unhurried')
    },
    sweep() {
      for (const lane of lanes.values()) {
        if (lane.held > 0 || lane.timer !== undefined || marked.has(lane)) continue
        count[lane.pace]--
        lanes.delete(lane.webhookId)
      }
    },
  }
}

/** An attempt that takes longer makes its lane silent until it ends, milliseconds. */
export const patienceOf = ({ usualMs }: Lane): number => Math.max(QUICK_MS, 3 * usualMs)

const newLane = (webhookId: string): Lane => ({
  webhookId,
  waiting: [],
  inFlight: 0,
  held: 0,
  pace: 'quick',
  isProven: false,
  usualMs: 0,
  failures: 0,
  pausedUntil: 0,
  timer: undefined,
})
