import { Lane } from './lane.ts'
import { createTally, placesLeft } from './places.ts'
import type { ClaimedDelivery, ClaimRequest } from './store.ts'

const EVER = new Date(0)

/** Webhooks in one claim. */
const MAX_LANES = 100

/** A lane for each webhook that has had deliveries lately. */
export type Lanes = {
  /** There may be deliveries that are due since then; without a time, since ever. */
  mark(webhookId: string, dueFrom?: Date): void
  /** The next claim, in turn; empty when no lane has both room and perhaps due deliveries. */
  requests(): readonly ClaimRequest[]
  /** The answer to a request. */
  take(request: ClaimRequest, claimed: readonly ClaimedDelivery[]): Lane
  all(): Iterable<Lane>
  /** Forgets idle lanes. */
  sweep(): void
}

/** `onDue`: called when a webhook may have due deliveries, or its lane room again. */
export function createLanes(onDue: (webhookId: string) => void): Lanes {
  const lanes = new Map<string, Lane>()
  /** Lanes that may have due deliveries, and since when, in the order of their turns. */
  const marked = new Map<Lane, Date>()
  const tally = createTally()

  function of(webhookId: string): Lane {
    const known = lanes.get(webhookId)
    if (known !== undefined) return known
    const lane = new Lane(webhookId, tally, () => onDue(webhookId))
    lanes.set(webhookId, lane)
    return lane
  }

  function mark(lane: Lane, dueFrom: Date): void {
    const before = marked.get(lane)
    if (before === undefined || dueFrom < before) marked.set(lane, dueFrom)
  }

  return {
    all: () => lanes.values(),
    mark: (webhookId, dueFrom = EVER) => mark(of(webhookId), dueFrom),
    requests() {
      const left = placesLeft(tally)
      const asked: ClaimRequest[] = []
      for (const [lane, dueFrom] of marked) {
        if (asked.length === MAX_LANES) break
        const free = Math.min(lane.room, left[lane.pace])
        if (free <= 0) continue
        left[lane.pace] -= free
        marked.delete(lane)
        asked.push({ webhookId: lane.webhookId, free, dueFrom })
      }
      return asked
    },
    take({ webhookId, free }, claimed) {
      const lane = of(webhookId)
      lane.take(claimed)
      // There may be more, none of which was due before these.
      const latest = claimed.reduce((latest, { dueAt }) => (dueAt > latest ? dueAt : latest), EVER)
      if (claimed.length === free) mark(lane, latest)
      return lane
    },
    sweep() {
      for (const lane of lanes.values()) {
        if (!lane.isIdle || marked.has(lane)) continue
        lane.leave()
        lanes.delete(lane.webhookId)
      }
    },
  }
}
