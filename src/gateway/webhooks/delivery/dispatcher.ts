import type { Kernel } from '#kernel/kernel.ts'
import type { Background } from './background.ts'
import type { AttemptClaimed } from './claimed-attempts.ts'
import { type Lane, type Lanes, MAX_IN_FLIGHT, patienceOf } from './lanes.ts'
import { createOutcomes } from './outcomes.ts'
import { type ClaimedDelivery, type ClaimRequest, claimDeliveries, releaseClaims } from './store.ts'

/** Claims due deliveries and attempts them, lane by lane. */
export type Dispatcher = {
  /** Claims what the marked lanes have room for. */
  dispatch(): void
  /** Claims no more, and gives back what no attempt has begun for. */
  stop(): void
  /** The number of attempts that it has made. */
  attempts(): number
}

type Parts = {
  readonly lanes: Lanes
  readonly background: Background
  readonly attempt: AttemptClaimed
  /** Called when a lane has a due delivery, or room again, after so many milliseconds. */
  readonly onLater: (lane: Lane, delay: number) => void
}

export function createDispatcher(kernel: Kernel, { lanes, background, attempt, onLater }: Parts): Dispatcher {
  const { db, now } = kernel
  const recordOutcome = createOutcomes(kernel)
  const dispatch = background.coalesced(claimAll)
  let isStopped = false
  let attempts = 0

  async function claimAll(): Promise<void> {
    if (isStopped) return
    for (let asked = lanes.requests(); asked.length > 0; asked = lanes.requests()) {
      await claim(asked)
      if (isStopped) return giveBackAll()
    }
  }

  async function claim(asked: readonly ClaimRequest[]): Promise<void> {
    const claimed = Map.groupBy(await claimDeliveries(db, now(), asked), ({ webhookId }) => webhookId)
    for (const { webhookId, free } of asked) {
      const lane = lanes.of(webhookId)
      const fresh = claimed.get(webhookId) ?? []
      if (fresh.length === free) lanes.mark(webhookId)
      lanes.hold(lane, fresh.length)
      lane.waiting.push(...fresh)
      advance(lane)
    }
  }

  /** Begins as many attempts as the endpoint may have at once. */
  function advance(lane: Lane): void {
    while (lane.inFlight < MAX_IN_FLIGHT) {
      const next = lane.waiting.shift()
      if (next === undefined) return
      lane.inFlight++
      background.run(() =>
        deliver(lane, next).finally(() => {
          lanes.hold(lane, -1)
          advance(lane)
          dispatch()
        }),
      )
    }
  }

  async function deliver(lane: Lane, delivery: ClaimedDelivery): Promise<void> {
    const late = setTimeout(() => makeRoom(lane), patienceOf(lane))
    const made = await attempt(delivery).finally(() => {
      clearTimeout(late)
      lane.inFlight--
    })
    if (made === undefined) return releaseClaims(db, now(), [delivery])
    const { result, url } = made
    attempts++
    lanes.learn(lane, result)
    if (lane.pace !== 'quick') giveBack(lane)
    // The endpoint need not wait until the outcome is written.
    advance(lane)
    const { nextAttemptAt } = await recordOutcome(delivery, result, url)
    if (nextAttemptAt !== null) onLater(lane, nextAttemptAt.getTime() - now().getTime())
    if (lane.pausedUntil > performance.now()) onLater(lane, lane.pausedUntil - performance.now())
  }

  /** A silent endpoint keeps only the requests that it has: others need the places. */
  function makeRoom(lane: Lane): void {
    if (lane.pace === 'silent') return
    lanes.suspect(lane)
    giveBack(lane)
    dispatch()
  }

  /** Releases the claims that the lane has made ahead. It may take as many again as its share allows. */
  function giveBack(lane: Lane): void {
    const waiting = lane.waiting.splice(0)
    if (waiting.length === 0) return
    lanes.hold(lane, -waiting.length)
    background.run(async () => {
      await releaseClaims(db, now(), waiting)
      lanes.mark(lane.webhookId)
      dispatch()
    })
  }

  function giveBackAll(): void {
    for (const lane of lanes.all()) giveBack(lane)
  }

  return {
    dispatch,
    attempts: () => attempts,
    stop() {
      isStopped = true
      giveBackAll()
    },
  }
}
