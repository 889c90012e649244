import type { Kernel } from '#kernel/kernel.ts'
import { createBackground } from './background.ts'
import { createClaimedAttempts } from './claimed-attempts.ts'
import { createDispatcher } from './dispatcher.ts'
import { createLanes } from './lanes.ts'
import { type DueWebhook, findDueWebhooks } from './store.ts'

/**
 * Delivers what is due in the outbox. Every process does: it claims deliveries for a lease, so that those of a process that dies become
 * due again. The process that emits an event begins at once; a slow poll finds everything else. Each webhook has a lane of its own.
 */
export type DeliveryWorkers = {
  start(): void
  /** Delivers all that is due now, and returns the number of attempts; for tests, which do not `start`. */
  drain(): Promise<number>
  /** Looks for deliveries of these webhooks that are due since then; without a time, since ever. */
  wake(webhookIds: readonly string[], dueFrom?: Date): void
  /** Claims no more, waits so long for the requests that run, and gives the rest back. */
  stop(patience: number): Promise<void>
}

/** Milliseconds between two looks at all webhooks: for retries, and for events of processes that have died or do not deliver. */
const POLL = 5_000

export function createDeliveryWorkers(kernel: Kernel): DeliveryWorkers {
  const { db, now, log } = kernel
  const lanes = createLanes((webhookId) => wake([webhookId]))
  const cutOff = new AbortController()
  const background = createBackground(log, cutOff.signal)
  const attempt = createClaimedAttempts(kernel, cutOff.signal)
  const dispatcher = createDispatcher(kernel, { lanes, background, attempt })
  let state: 'idle' | 'started' | 'stopped' = 'idle'
  let poll: NodeJS.Timeout | undefined

  function deliver(due: readonly DueWebhook[]): void {
    for (const { id, dueFrom } of due) lanes.mark(id, dueFrom)
    if (due.length > 0) dispatcher.dispatch()
  }

  function wake(webhookIds: readonly string[], dueFrom?: Date): void {
    if (state !== 'started') return
    for (const id of webhookIds) lanes.mark(id, dueFrom)
    dispatcher.dispatch()
  }

  function keepLooking(): void {
    if (state !== 'started') return
    background.run(async () => {
      lanes.sweep()
      deliver(await findDueWebhooks(db, now()))
    })
    poll = setTimeout(keepLooking, POLL).unref()
  }

  const dueNow = async () => (state === 'stopped' ? [] : await findDueWebhooks(db, now()))

  kernel.events.onDeliveries(wake)

  return {
    wake,
    start() {
      state = 'started'
      keepLooking()
    },
    async drain() {
      const before = dispatcher.attempts()
      for (let due = await dueNow(); due.length > 0; due = await dueNow()) {
        for (const lane of lanes.all()) lane.resume()
        deliver(due)
        await background.settle()
      }
      return dispatcher.attempts() - before
    },
    async stop(patience) {
      state = 'stopped'
      clearTimeout(poll)
      dispatcher.stop()
      const late = setTimeout(() => cutOff.abort(), patience)
      await background.settle()
      clearTimeout(late)
    },
  }
}
