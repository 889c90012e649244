import type { Kernel } from '#kernel/kernel.ts'
import { createClaimedAttempts } from './claimed-attempts.ts'
import { createLanes, type Lane, MAX_IN_FLIGHT, SLOW_MS } from './lanes.ts'
import { createOutcomes } from './outcomes.ts'
import {
  type ClaimedDelivery,
  type ClaimRequest,
  claimDeliveries,
  findDueWebhooks,
  releaseClaims,
} from './store.ts'

/**
 * Delivers what is due in the outbox. Every process does: it claims deliveries for a lease, so that those of a process that dies become
 * due again. The process that emits an event begins at once; a slow poll finds everything else. Each webhook has a lane of its own.
 */
export type DeliveryWorkers = {
  start(): void
  /** Delivers all that is due now, and returns the number of attempts; for tests, which do not `start`. */
  drain(): Promise<number>
  /** Looks for due deliveries of these webhooks. */
  wake(webhookIds: readonly string[]): void
  /** Claims no more, waits so long for the requests that run, and gives the rest back. */
  stop(patience: number): Promise<void>
}

/** Milliseconds between two looks at all webhooks: for retries, and for events of processes that have died or do not deliver. */
const POLL = 5_000

/** Retries within this time have a timer of their own; later ones wait for the poll, milliseconds. */
const SOON = 60_000

/** All deliveries that run when the database fails share one line of the log, milliseconds. */
const QUIET = 5_000

export function createDeliveryWorkers(kernel: Kernel): DeliveryWorkers {
  const { db, now, log } = kernel
  const recordOutcome = createOutcomes(kernel)
  const lanes = createLanes()
  const cutOff = new AbortController()
  const attempt = createClaimedAttempts(kernel, cutOff.signal)
  const running = new Set<Promise<void>>()
  let state: 'idle' | 'started' | 'stopped' = 'idle'
  let claiming: Promise<void> | undefined
  let isAskedAgain = false
  let poll: NodeJS.Timeout | undefined
  let attempts = 0
  let quietUntil = 0

  /** Never rejects. Its work is awaited by `stop`. */
  function run(work: () => Promise<void>): void {
    const promise: Promise<void> = work()
      .catch(complain)
      .finally(() => running.delete(promise))
    running.add(promise)
  }

  /** The leases end by themselves, and the deliveries are due again. */
  function complain(error: unknown): void {
    if (cutOff.signal.aborted || performance.now() < quietUntil) return
    quietUntil = performance.now() + QUIET
    log.warn(
      { event: 'webhook_delivery_error', error },
      'deliveries of webhooks wait for the control database',
    )
  }

  function claim(): void {
    if (state === 'stopped') return
    isAskedAgain = claiming !== undefined
    claiming ??= claimAll()
      .catch(complain)
      .finally(() => {
        claiming = undefined
        if (isAskedAgain) claim()
      })
  }

  async function claimAll(): Promise<void> {
    for (let asked = lanes.requests(); asked.length > 0; asked = lanes.requests()) {
      await claimOnce(asked)
      if (state === 'stopped') return giveBack()
    }
  }

  async function claimOnce(asked: readonly ClaimRequest[]): Promise<void> {
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
      run(() =>
        deliver(lane, next).finally(() => {
          lanes.hold(lane, -1)
          advance(lane)
          claim()
        }),
      )
    }
  }

  async function deliver(lane: Lane, delivery: ClaimedDelivery): Promise<void> {
    const late = setTimeout(() => makeRoom(lane), SLOW_MS)
    const made = await attempt(delivery).finally(() => {
      clearTimeout(late)
      lane.inFlight--
    })
    if (made === undefined) return releaseClaims(db, now(), [delivery])
    const { result, url } = made
    attempts++
    lanes.learn(lane, result)
    if (lane.isSlow) giveBackWaiting(lane)
    // The endpoint need not wait until the outcome is written.
    advance(lane)
    const { nextAttemptAt } = await recordOutcome(delivery, result, url)
    if (nextAttemptAt !== null) wakeAt(lane, nextAttemptAt.getTime() - now().getTime())
    if (lane.pausedUntil > performance.now()) wakeAt(lane, lane.pausedUntil - performance.now())
  }

  /** A silent endpoint keeps only the requests that it has: others need the places. */
  function makeRoom(lane: Lane): void {
    if (lane.isSlow) return
    lanes.slowDown(lane)
    giveBackWaiting(lane)
    claim()
  }

  /** What the lane has claimed ahead. It may take as many claims again as its share allows. */
  function giveBackWaiting(lane: Lane): void {
    const waiting = lane.waiting.splice(0)
    if (waiting.length === 0) return
    lanes.hold(lane, -waiting.length)
    run(async () => {
      await releaseClaims(db, now(), waiting)
      lanes.mark(lane.webhookId)
      claim()
    })
  }

  function giveBack(): void {
    for (const lane of lanes.all()) giveBackWaiting(lane)
  }

  function wakeAt(lane: Lane, delay: number): void {
    if (state !== 'started' || delay > SOON) return
    const at = performance.now() + Math.max(0, delay)
    if (lane.timer !== undefined && lane.timer.at <= at) return
    clearTimeout(lane.timer?.handle)
    const handle = setTimeout(() => {
      lane.timer = undefined
      wake([lane.webhookId])
    }, delay).unref()
    lane.timer = { at, handle }
  }

  function wake(webhookIds: readonly string[]): void {
    for (const id of webhookIds) lanes.mark(id)
    if (webhookIds.length > 0) claim()
  }

  async function look(): Promise<void> {
    lanes.sweep()
    wake(await findDueWebhooks(db, now()))
  }

  function keepLooking(): void {
    if (state !== 'started') return
    run(look)
    poll = setTimeout(keepLooking, POLL).unref()
  }

  const dueNow = async () => (state === 'stopped' ? [] : await findDueWebhooks(db, now()))

  async function settle(): Promise<void> {
    while (claiming !== undefined || running.size > 0) await Promise.all([claiming, ...running])
  }

  kernel.events.onDeliveries((webhookIds) => {
    if (state === 'started') wake(webhookIds)
  })

  return {
    wake: (webhookIds) => {
      if (state === 'started') wake(webhookIds)
    },
    start() {
      state = 'started'
      keepLooking()
    },
    async drain() {
      const before = attempts
      for (let due = await dueNow(); due.length > 0; due = await dueNow()) {
        for (const lane of lanes.all()) lane.pausedUntil = 0
        wake(due)
        await settle()
      }
      return attempts - before
    },
    async stop(patience) {
      state = 'stopped'
      clearTimeout(poll)
      for (const lane of lanes.all()) clearTimeout(lane.timer?.handle)
      giveBack()
      const late = setTimeout(() => cutOff.abort(), patience)
      await settle()
      clearTimeout(late)
    },
  }
}
