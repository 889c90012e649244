import { Lane } from './lane.ts'
import { createTally, placesLeft } from './places.ts'
import type { ClaimedDelivery, ClaimRequest } from './store.ts'

/** Webhooks in one claim. */
const MAX_LANES = 100

/** A lane for each webhook that has had deliveries lately. */
export type Lanes = {
  /** There may be due deliveries. */
  mark(webhookId: string): void
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
  /** Lanes that may have due deliveries, in the order of their turns. */
  const marked = new Set<Lane>()
  const tally = createTally()

  function of(webhookId: string): Lane {
    const known = lanes.get(webhookId)
    if (known !== undefined) return known
    const lane = new Lane(webhookId, tally, () => onDue(webhookId))
    lanes.set(webhookId, lane)
    return lane
  }

  return {
    all: () => lanes.values(),
    mark: (webhookId) => void marked.add(of(webhookId)),
    requests() {
      const left = placesLeft(tally)
      const asked: ClaimRequest[] = []
      for (const lane of marked) {
        if (asked.length === MAX_LANES) break
        const free = Math.min(lane.room, left[lane.pace])
        if (free <= 0) continue
        left[lane.pace] -= free
        marked.delete(lane)
        asked.push({ webhookId: lane.webhookId, free })
      }
      return asked
    },
    take({ webhookId, free }, claimed) {
      const lane = of(webhookId)
      lane.take(claimed)
      // There may be more.
      if (claimed.length === free) marked.add(lane)
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
