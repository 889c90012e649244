import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
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
/**
 * Milliseconds until a request to a silent endpoint ends, which is after the last event is added: two hundred ends at once keep a busy machine
 * for ten seconds. An event that waits for one takes 10 to 30 s; alone it takes 0.7 to 2 s.
 */
const SILENCE = 30_000

test('beside 200 silent endpoints with events, no event of one that needs 700 ms waits for any of them', async (t) => {
  const silent = await startReceiver(() => {})
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
    const [event = ''] = await addEvents(kernel, good)
    addedAt.set(event, performance.now())
    workers.wake([good])
    await sleep(PAUSE)
  }
  const end = performance.now() + SILENCE
  while (answeredAt.size < EVENTS && performance.now() < end) await sleep(20)
  await kernel.db.updateTable('webhook').set({ isActive: false }).execute()
  await workers.stop(50)
  const times = [...addedAt].map(([id, at]) => (answeredAt.get(id) ?? Infinity) - at).sort((a, b) => a - b)
  const [median = Number.NaN, p99 = Number.NaN] = [times[EVENTS / 2], times[EVENTS * 0.99 - 1]]
  t.diagnostic(
    `p50 ${median.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, worst ${times.at(-1)?.toFixed(0)} ms beside ${silent.received.length} requests without an answer`,
  )
  assert.ok((times.at(-1) ?? Infinity) < SILENCE / 2, `${times.at(-1)} ms`)
})
