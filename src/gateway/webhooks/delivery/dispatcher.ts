import type { Kernel } from '#kernel/kernel.ts'
import type { Background } from './background.ts'
import type { AttemptClaimed } from './claimed-attempts.ts'
import type { Lane } from './lane.ts'
import type { Lanes } from './lanes.ts'
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

type Parts = { readonly lanes: Lanes; readonly background: Background; readonly attempt: AttemptClaimed }

export function createDispatcher(kernel: Kernel, { lanes, background, attempt }: Parts): Dispatcher {
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
    for (const request of asked) advance(lanes.take(request, claimed.get(request.webhookId) ?? []))
  }

  /** Begins as many attempts as the endpoint may have at once. */
  function advance(lane: Lane): void {
    for (let next = lane.begin(); next !== undefined; next = lane.begin()) {
      const delivery = next
      background.run(() =>
        deliver(lane, delivery).finally(() => {
          lane.settle()
          advance(lane)
          dispatch()
        }),
      )
    }
  }

  async function deliver(lane: Lane, delivery: ClaimedDelivery): Promise<void> {
    const late = setTimeout(() => makeRoom(lane), lane.patience)
    const made = await attempt(delivery).finally(() => {
      clearTimeout(late)
      lane.end()
    })
    if (made === undefined) return releaseClaims(db, [delivery])
    attempts++
    giveBack(lane, lane.learn(made.result))
    // The endpoint need not wait until the outcome is written.
    advance(lane)
    const { nextAttemptAt } = await recordOutcome(delivery, made.result, made.url)
    if (nextAttemptAt !== null) lane.expect(nextAttemptAt.getTime() - now().getTime())
  }

  function makeRoom(lane: Lane): void {
    if (lane.pace === 'silent') return
    giveBack(lane, lane.suspect())
    dispatch()
  }

  /** Releases claims that the lane has made ahead. It may take as many again as its share allows. */
  function giveBack(lane: Lane, claims: readonly ClaimedDelivery[]): void {
    if (claims.length === 0) return
    background.run(async () => {
      await releaseClaims(db, claims)
      lanes.mark(lane.webhookId)
      dispatch()
    })
  }

  function giveBackAll(): void {
    for (const lane of lanes.all()) giveBack(lane, lane.drop())
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
