import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { testKernel } from '#test/harness.ts'
import { addEvents, addWebhook, startReceiver } from '#test/webhooks.ts'
import { createDeliveryWorkers } from './workers.ts'

const kernel = await testKernel({
  config: { outbound: { allow_networks: ['127.0.0.0/8'], allow_http: true } },
})
const SILENT = 200
const EVENTS = 100
/** Milliseconds that the endpoint needs, and between its events. */
const [NEEDED, PAUSE] = [700, 200]
/** Milliseconds until a request to a silent endpoint ends, which is after the test: an event that waits for one would not be answered. */
const SILENCE = 600_000
// It allows 30 s.
await sql`alter table service.webhook drop constraint webhook_timeout`.execute(kernel.db)

test('beside 200 silent endpoints with events, no event of one that needs 700 ms waits for any of them', async (t) => {
  let ended = 0
  const silent = await startReceiver((response) => response.once('close', () => ended++))
  const answeredAt = new Map<string, number>()
  const unhurried = await startReceiver((response, { id }) =>
    setTimeout(() => {
      answeredAt.set(id, performance.now())
      response.writeHead(204).end()
    }, NEEDED),
  )
  const { id: good } = await addWebhook(kernel, { url: unhurried.url })
  const bad: string[] = []
  for (let number = 0; number < SILENT; number++) {
    const { id } = await addWebhook(kernel, { url: silent.url, timeoutMs: SILENCE })
    await addEvents(kernel, id, 20)
    bad.push(id)
  }
  const workers = createDeliveryWorkers(kernel)
  workers.start()
  workers.wake(bad)
  const addedAt = new Map<string, number>()
  for (let number = 0; number < EVENTS; number++) {
    const event = await addedEvent(good)
    addedAt.set(event, performance.now())
    workers.wake([good])
    await sleep(PAUSE)
  }
  // All of them, before a request to a silent endpoint ends; otherwise the test times out.
  while (answeredAt.size < EVENTS) await sleep(20)
  assert.equal(ended, 0)
  await kernel.db.updateTable('webhook').set({ isActive: false }).execute()
  await workers.stop(50)
  const times = [...addedAt].map(([id, at]) => (answeredAt.get(id) ?? Infinity) - at).sort((a, b) => a - b)
  const [median = Number.NaN, p99 = Number.NaN] = [times[EVENTS / 2], times[EVENTS * 0.99 - 1]]
  t.diagnostic(
    `p50 ${median.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, worst ${times.at(-1)?.toFixed(0)} ms beside ${silent.received.length} requests without an answer`,
  )
})

/** Added again when no connection of the pool, which the deliveries use as well, is open in time. */
async function addedEvent(webhookId: string): Promise<string> {
  for (;;) {
    try {
      const [event = ''] = await addEvents(kernel, webhookId)
      return event
    } catch (error) {
      if (!/timeout exceeded/.test(String(error))) throw error
    }
  }
}
