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
  /** The last attempt failed or takes long. */
  isSlow: boolean
  /** It has accepted an event in time, as far as this process remembers. */
  isProven: boolean
  /** Failed attempts in a row, as this process has seen them. */
  failures: number
  /** By performance.now(): no claims before. */
  pausedUntil: number
  /** Looks for due deliveries at its time. */
  timer: { readonly at: number; readonly handle: NodeJS.Timeout } | undefined
}

/** Requests of this process to one endpoint at once (gateway.md 12). */
export const MAX_IN_FLIGHT = 10

/**
 * Claims that a process holds at once, which bounds its memory. Slow endpoints have a share of their own, which they divide among
 * themselves, so that they take no place of the others.
 */
const MAX_FAST = 600
const MAX_SLOW = 128

/** An attempt that takes longer makes its lane slow, milliseconds. */
export const SLOW_MS = 500

/** A fast lane claims ahead, so that the next requests need not wait for a statement. It asks when half of that is used up. */
const FAST_REQUEST = MAX_PER_WEBHOOK / 2

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
  /** An attempt takes long: the endpoint may never answer, and must not keep its places until then. */
  slowDown(lane: Lane): void
  /** Remembers how the endpoint does. */
  learn(lane: Lane, attempt: { readonly isSuccess: boolean; readonly durationMs: number }): void
  all(): Iterable<Lane>
  /** Forgets lanes without claims. */
  sweep(): void
}

export function createLanes(): Lanes {
  const lanes = new Map<string, Lane>()
  /** Lanes that may have due deliveries, in the order of their turns. */
  const marked = new Set<Lane>()
  const held = { fast: 0, slow: 0 }
  let slowLanes = 0

  function of(webhookId: string): Lane {
    let lane = lanes.get(webhookId)
    if (lane === undefined) {
      lane = newLane(webhookId)
      lanes.set(webhookId, lane)
    }
    return lane
  }

  function hold(lane: Lane, count: number): void {
    lane.held += count
    held[shareOf(lane)] += count
  }

  function setSlow(lane: Lane, isSlow: boolean): void {
    if (lane.isSlow === isSlow) return
    held[shareOf(lane)] -= lane.held
    lane.isSlow = isSlow
    held[shareOf(lane)] += lane.held
    slowLanes += isSlow ? 1 : -1
  }

  function roomOf(lane: Lane): number {
    if (performance.now() < lane.pausedUntil) return 0
    if (!lane.isSlow && !lane.isProven) {
      // Many endpoints may be silent: then each gets one event to show whether it is.
      return Math.max(0, (held.slow < MAX_SLOW ? MAX_IN_FLIGHT : 1) - lane.held)
    }
    if (!lane.isSlow) {
      const room = MAX_PER_WEBHOOK - lane.held
      return room >= FAST_REQUEST ? room : 0
    }
    const share = Math.floor(MAX_SLOW / Math.max(1, slowLanes))
    return Math.max(0, Math.min(MAX_IN_FLIGHT, Math.max(1, share)) - lane.held)
  }

  return {
    of,
    hold,
    all: () => lanes.values(),
    mark: (webhookId) => void marked.add(of(webhookId)),
    requests() {
      const left = { fast: MAX_FAST - held.fast, slow: MAX_SLOW - held.slow }
      const asked: ClaimRequest[] = []
      for (const lane of marked) {
        if (asked.length === MAX_LANES) break
        const share = shareOf(lane)
        const free = Math.min(roomOf(lane), left[share])
        if (free <= 0) continue
        left[share] -= free
        marked.delete(lane)
        asked.push({ webhookId: lane.webhookId, free })
      }
      return asked
    },
    slowDown: (lane) => setSlow(lane, true),
    learn(lane, { isSuccess, durationMs }) {
      lane.failures = isSuccess ? 0 : lane.failures + 1
      if (lane.failures >= PAUSING_FAILURES) lane.pausedUntil = performance.now() + PAUSE
      const isSlow = !isSuccess || durationMs > SLOW_MS
      setSlow(lane, isSlow)
      lane.isProven ||= !isSlow
    },
    sweep() {
      for (const lane of lanes.values()) {
        if (lane.held > 0 || lane.timer !== undefined || marked.has(lane)) continue
        setSlow(lane, false)
        lanes.delete(lane.webhookId)
      }
    },
  }
}

const shareOf = ({ isSlow }: Lane): 'fast' | 'slow' => (isSlow ? 'slow' : 'fast')

const newLane = (webhookId: string): Lane => ({
  webhookId,
  waiting: [],
  inFlight: 0,
  held: 0,
  isSlow: false,
  isProven: false,
  failures: 0,
  pausedUntil: 0,
  timer: undefined,
})
