import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { controlDatabase, testClock, testKernel } from '#test/harness.ts'
import { TO_LOOPBACK } from '#test/identity-provider/visits.ts'
import { addEvents, addWebhook, startReceiver } from '#test/webhooks.ts'
import { claimDeliveries, releaseClaims } from './store.ts'
import { createDeliveryWorkers } from './workers.ts'

const SECOND = 1_000
const clock = testClock()
const options = { controlUrl: await controlDatabase(), config: { outbound: TO_LOOPBACK }, clock }
/** Like two processes on one database. */
const kernel = await testKernel(options)
const other = await testKernel(options)
const { db } = kernel
const workers = createDeliveryWorkers(kernel)

const logOf = (webhookId: string) =>
  db.selectFrom('webhookDelivery').selectAll().where('webhookId', '=', webhookId).orderBy('id').execute()
const deactivate = async (id: string) => {
  await db.updateTable('webhook').set({ isActive: false }).where('id', '=', id).execute()
  await kernel.coherence.settle()
}

test('two processes share the outbox, and each event is sent once', async () => {
  const others = createDeliveryWorkers(other)
  const { url, received } = await startReceiver()
  const { id } = await addWebhook(kernel, { url })
  await addEvents(kernel, id, 300)
  await Promise.all([workers.drain(), others.drain(), workers.drain()])
  assert.equal(received.length, 300)
  assert.equal(new Set(received.map((event) => event.id)).size, 300)
})

test('what a process had claimed when it died is due again when its lease ends', async () => {
  const { url, received } = await startReceiver()
  const { id } = await addWebhook(kernel, { url, timeoutMs: 1_000 })
  await addEvents(kernel, id, 5)
  const lease = new Date(kernel.now().getTime() + 11 * SECOND)
  await db.updateTable('webhookDelivery').set({ claimedUntil: lease }).where('webhookId', '=', id).execute()
  assert.equal(await workers.drain(), 0)
  clock.advance(12 * SECOND)
  assert.equal(await workers.drain(), 5)
  assert.deepEqual(
    (await logOf(id)).map((row) => [row.status, row.attempt]),
    Array(5).fill(['succeeded', 1]),
  )
  assert.equal(received.length, 5)
})

test('a lease of a time before the clock was set back holds nobody up', async () => {
  const { url, received } = await startReceiver()
  const { id } = await addWebhook(kernel, { url })
  await addEvents(kernel, id)
  const lease = new Date(kernel.now().getTime() + 86_400 * SECOND)
  await db.updateTable('webhookDelivery').set({ claimedUntil: lease }).where('webhookId', '=', id).execute()
  assert.equal(await workers.drain(), 1)
  assert.equal(received.length, 1)
})

test('an attempt that ends after another process has taken the delivery over counts for nothing', async () => {
  const taken = new Date(kernel.now().getTime() + 60 * SECOND)
  const { url, received } = await startReceiver(async (response) => {
    await db.updateTable('webhookDelivery').set({ claimedUntil: taken }).where('webhookId', '=', id).execute()
    response.writeHead(410).end()
  })
  const { id } = await addWebhook(kernel, { url })
  await addEvents(kernel, id)
  await workers.drain()
  assert.equal(received.length, 1)
  const webhook = await db.selectFrom('webhook').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  assert.deepEqual([webhook.isActive, webhook.consecutiveFailures, webhook.failingSince], [true, 0, null])
  const [row] = await logOf(id)
  assert.deepEqual([row?.status, row?.attempt, row?.claimedUntil], ['pending', 0, taken])
  await deactivate(id)
})

test('an endpoint gets at most 10 requests at once, and a silent one does not delay another', async () => {
  const open = new Set<ServerResponse>()
  let most = 0
  const silent = await startReceiver((response) => {
    open.add(response)
    most = Math.max(most, open.size)
    response.on('close', () => open.delete(response))
  })
  const healthy = await startReceiver()
  const { id: bad } = await addWebhook(kernel, { url: silent.url, timeoutMs: 20_000 })
  const { id: good } = await addWebhook(kernel, { url: healthy.url })
  await addEvents(kernel, bad, 25)
  await addEvents(kernel, good, 100)
  const draining = workers.drain()
  while (healthy.received.length < 100 || open.size < 10) await sleep(5)
  assert.equal(open.size, 10, 'no request to the silent one has ended')
  await deactivate(bad)
  for (const response of open) response.writeHead(204).end()
  await draining
  assert.equal(most, 10)
})

test('endpoints that have never answered, with many events due, do not delay another', async () => {
  const crowded = createDeliveryWorkers(other)
  const silent = await startReceiver(() => {})
  const bad: string[] = []
  for (let number = 0; number < 20; number++) {
    const { id } = await addWebhook(kernel, { url: silent.url, timeoutMs: 20_000 })
    await addEvents(kernel, id, 100)
    bad.push(id)
  }
  const draining = crowded.drain()
  while (silent.received.length < 60) await sleep(5)
  await sleep(100)
  const healthy = await startReceiver()
  const { id: good } = await addWebhook(other, { url: healthy.url })
  await addEvents(other, good)
  crowded.start()
  const began = performance.now()
  while (healthy.received.length < 1 && performance.now() - began < 15_000) await sleep(5)
  const waited = performance.now() - began
  for (const id of bad) await deactivate(id)
  await crowded.stop(50)
  await draining
  assert.ok(waited < 15_000, 'before a request to a silent one has ended')
})

test('an endpoint that needs 700 ms does not wait for 200 silent ones', async () => {
  const crowded = createDeliveryWorkers(other)
  const silent = await startReceiver(() => {})
  const unhurried = await startReceiver(
    (response) => void setTimeout(() => response.writeHead(204).end(), 700),
  )
  const { id: good } = await addWebhook(other, { url: unhurried.url })
  const bad: string[] = []
  for (let number = 0; number < 200; number++) {
    const { id } = await addWebhook(kernel, { url: silent.url, timeoutMs: 20_000 })
    await addEvents(kernel, id, 20)
    bad.push(id)
  }
  const draining = crowded.drain()
  while (silent.received.length < 200) await sleep(5)
  crowded.start()
  const began = performance.now()
  for (let round = 1; round <= 5; round++) {
    await addEvents(other, good, 5)
    crowded.wake([good])
    while (unhurried.received.length < round * 5 && performance.now() - began < 15_000) await sleep(5)
  }
  const waited = performance.now() - began
  for (const id of [...bad, good]) await deactivate(id)
  await crowded.stop(50)
  await draining
  assert.equal(unhurried.received.length, 25)
  assert.ok(waited < 15_000, 'before a request to a silent one has ended')
})

test('an endpoint that has just answered 503 does not wait for silent ones', async () => {
  const crowded = createDeliveryWorkers(other)
  const silent = await startReceiver(() => {})
  let status = 503
  const recovering = await startReceiver((response) => response.writeHead(status).end())
  const { id: good } = await addWebhook(other, { url: recovering.url })
  crowded.start()
  await addEvents(other, good)
  crowded.wake([good])
  while (recovering.received.length < 1) await sleep(5)
  status = 204
  const bad: string[] = []
  for (let number = 0; number < 140; number++) {
    const { id } = await addWebhook(kernel, { url: silent.url, timeoutMs: 20_000 })
    await addEvents(kernel, id, 5)
    bad.push(id)
  }
  crowded.wake(bad)
  while (silent.received.length < 140) await sleep(5)
  await sleep(600)
  const began = performance.now()
  await addEvents(other, good, 3)
  crowded.wake([good])
  while (recovering.received.length < 4 && performance.now() - began < 15_000) await sleep(5)
  const waited = performance.now() - began
  for (const id of bad) await deactivate(id)
  await crowded.stop(50)
  assert.ok(waited < 15_000, 'before a request to a silent one has ended')
})

test('a long event waits in the database, not in the memory of a process, and arrives whole', async () => {
  const { url, received } = await startReceiver()
  const { id } = await addWebhook(kernel, { url })
  const [long = ''] = await addEvents(kernel, id, 2)
  const body = JSON.stringify({ text: 'ж'.repeat(120_000) })
  await db.updateTable('webhookEvent').set({ body }).where('id', '=', long).execute()
  const claimed = await claimDeliveries(db, kernel.now(), [{ webhookId: id, free: 2, dueFrom: new Date(0) }])
  assert.deepEqual(
    new Set(claimed.map((claim) => [claim.eventId === long, claim.body === null].join())),
    new Set(['true,true', 'false,false']),
  )
  await releaseClaims(db, claimed)
  // Deliveries of other tests may be due as well.
  await workers.drain()
  assert.equal(received.length, 2)
  assert.equal(received.find((event) => event.id === long)?.body, body)
})

test('a process that stops gives back what it has not begun, and what takes too long', async () => {
  const stopping = createDeliveryWorkers(other)
  const silent = await startReceiver(() => {})
  const { id } = await addWebhook(kernel, { url: silent.url, timeoutMs: 20_000 })
  await addEvents(kernel, id, 30)
  const draining = stopping.drain()
  while (silent.received.length < 10) await sleep(5)
  await stopping.stop(50)
  await draining
  const rows = await logOf(id)
  assert.deepEqual(
    rows.map(({ status, attempt, claimedUntil }) => [status, attempt, claimedUntil]),
    Array(30).fill(['pending', 0, null]),
  )
  assert.ok(rows.every(({ nextAttemptAt }) => nextAttemptAt !== null && nextAttemptAt <= kernel.now()))
  await deactivate(id)
})
