import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { testClock, testService } from '#test/harness.ts'
import { TO_LOOPBACK } from '#test/identity-provider/visits.ts'
import { addEvents, addWebhook, startReceiver, verified } from '#test/webhooks.ts'
import { listFailingWebhooks, NOT_FAILING } from '../store.ts'

const SECOND = 1_000
const HOUR = 3_600 * SECOND
const DAY = 24 * HOUR

const config = { outbound: TO_LOOPBACK }
/** Turned by hand only: on a busy machine no wait runs out by itself. */
const clock = testClock({ isStopped: true })
const t = await testService({ config, clock })
const { kernel, deliveries: workers } = t.service
const { db } = kernel

const logOf = (webhookId: string) =>
  db.selectFrom('webhookDelivery').selectAll().where('webhookId', '=', webhookId).orderBy('id').execute()
const webhookOf = (id: string) =>
  db.selectFrom('webhook').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
const change = async (id: string, set: Readonly<Record<string, unknown>>) => {
  await db
    .updateTable('webhook')
    .set({ ...set, updatedAt: kernel.now() })
    .where('id', '=', id)
    .execute()
  await kernel.coherence.settle()
}
const actsOn = async (id: string) => {
  const acts = await db.selectFrom('auditEvent').select('action').where('targetId', '=', id).execute()
  return acts.map(({ action }) => action)
}

test('an event is sent once, with the headers of the webhook and a signature that the official package verifies', async () => {
  const { url, received } = await startReceiver((response) => response.writeHead(202).end('thanks'))
  const { id, secret } = await addWebhook(kernel, {
    url: `${url}/hook?a=b`,
    headers: { 'x-token': 'mine', 'Webhook-Id': 'forged', 'content-type': 'text/plain' },
  })
  const [eventId] = await addEvents(kernel, id)
  assert.equal(await workers.drain(), 1)
  assert.equal(await workers.drain(), 0)
  const [event] = received
  assert.ok(event && received.length === 1)
  const payload = verified(secret, event)
  assert.deepEqual(payload, {
    ...(payload as object),
    id: eventId,
    type: 'gateway_insert',
    client: 'default',
  })
  const { headers } = event
  assert.deepEqual(
    [event.path, event.id, headers['x-token'], headers['content-type']],
    ['/hook?a=b', eventId, 'mine', 'application/json'],
  )
  const [row] = await logOf(id)
  assert.deepEqual(
    [row?.status, row?.attempt, row?.responseStatus, row?.responseBody, row?.error, row?.nextAttemptAt],
    ['succeeded', 1, 202, 'thanks', null, null],
  )
  assert.ok((row?.durationMs ?? -1) >= 0)
  assert.deepEqual([(await webhookOf(id)).consecutiveFailures, await actsOn(id)], [0, []])
})

test('a refused event comes again on the schedule, with the same id and a new time, and then has failed', async () => {
  const { url, received } = await startReceiver((response) => response.writeHead(500).end('no'))
  const { id } = await addWebhook(kernel, { url })
  const [eventId] = await addEvents(kernel, id)
  const delays = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000].map((seconds) => seconds * SECOND)
  for (const [made, delay] of delays.entries()) {
    assert.equal(await workers.drain(), 1)
    const [row] = await logOf(id)
    const wait = (row?.nextAttemptAt?.getTime() ?? 0) - kernel.now().getTime()
    assert.deepEqual([row?.status, row?.attempt, row?.responseStatus], ['retrying', made + 1, 500])
    assert.ok(wait > delay * 0.79 - SECOND && wait < delay * 1.21, `${wait} ms after attempt ${made + 1}`)
    clock.advance(wait - 1_000)
    assert.equal(await workers.drain(), 0, 'not earlier')
    clock.advance(1_001)
  }
  assert.equal(await workers.drain(), 1)
  const [row] = await logOf(id)
  assert.deepEqual([row?.status, row?.attempt, row?.nextAttemptAt], ['failed', 8, null])
  assert.equal(row?.error, 'The endpoint answered 500.')
  assert.equal((await webhookOf(id)).consecutiveFailures, 8)
  clock.advance(DAY)
  assert.equal(await workers.drain(), 0)
  assert.deepEqual(new Set(received.map((event) => event.id)), new Set([eventId]))
  const times = received.map(({ headers }) => Number(headers['webhook-timestamp']))
  assert.ok(times.every((time, index) => index === 0 || time > (times[index - 1] ?? 0)))
  assert.equal(new Set(received.map(({ headers }) => headers['webhook-signature'])).size, 8)
})

test('the next attempt is not earlier than the endpoint asks, within a day; a malformed wish counts for nothing', async () => {
  let asked: string[] = []
  const { url } = await startReceiver((response) =>
    response
      .setHeader('retry-after', asked)
      .writeHead(asked[0] === '120' ? 429 : 503)
      .end(),
  )
  const inTenMinutes = new Date(kernel.now().getTime() + 600_000).toUTCString()
  for (const [header, min, max] of [
    ['120', 119, 120],
    [inTenMinutes, 590, 600],
    ['9999999999999999999999', 86_399, 86_400],
    ['1', 3, 6],
    ...[
      'soon',
      '-120',
      '12.5',
      '0x99',
      '',
      'Fri, 99 Foo 2099 00:00:00 GMT',
      '2099-01-01',
      'Fri, 01 Jan 1999 00:00:00 GMT',
    ].map((malformed) => [malformed, 3, 6] as const),
    [['120', '240'], 3, 6],
  ] as const) {
    asked = [header].flat()
    const { id } = await addWebhook(kernel, { url })
    await addEvents(kernel, id)
    await workers.drain()
    const [row] = await logOf(id)
    const wait = ((row?.nextAttemptAt?.getTime() ?? 0) - kernel.now().getTime()) / SECOND
    assert.equal(row?.status, 'retrying')
    assert.ok(wait > min - 1 && wait <= max, `${wait} s after Retry-After: ${header}`)
    await change(id, { isActive: false })
  }
})

test('a success ends the count of failures', async () => {
  let status = 503
  const { url } = await startReceiver((response) => response.writeHead(status).end())
  const { id } = await addWebhook(kernel, { url })
  await addEvents(kernel, id, 3)
  await workers.drain()
  assert.equal((await webhookOf(id)).consecutiveFailures, 3)
  status = 200
  clock.advance(10 * SECOND)
  await workers.drain()
  const { consecutiveFailures, failingSince } = await webhookOf(id)
  assert.deepEqual([consecutiveFailures, failingSince], [0, null])
  assert.deepEqual(
    (await logOf(id)).map((row) => [row.status, row.attempt]),
    Array(3).fill(['succeeded', 2]),
  )
})

test('410 ends the delivery and sets the webhook inactive, with a reason and an act', async () => {
  const { url, received } = await startReceiver((response) => response.writeHead(410).end())
  const { id } = await addWebhook(kernel, { url })
  await addEvents(kernel, id)
  await workers.drain()
  const [row] = await logOf(id)
  assert.deepEqual([row?.status, row?.attempt, row?.nextAttemptAt], ['failed', 1, null])
  const { isActive, disabledReason } = await webhookOf(id)
  assert.deepEqual([isActive, disabledReason], [false, 'The endpoint answered 410 Gone.'])
  assert.deepEqual(await actsOn(id), ['webhook.deactivated'])
  const failing = (await listFailingWebhooks(db)).find((webhook) => webhook.id === id)
  assert.equal(failing?.disabledReason, disabledReason, 'gatehouse doctor names it')
  await addEvents(kernel, id)
  clock.advance(DAY)
  assert.equal(await workers.drain(), 0)
  assert.equal(received.length, 1)
})

test('an answer of a former address says nothing about the new one', async () => {
  const old = await startReceiver(async (response) => {
    await change(id, { url: fresh.url })
    response.writeHead(410).end()
  })
  const fresh = await startReceiver()
  const { id } = await addWebhook(kernel, { url: old.url })
  await addEvents(kernel, id)
  await workers.drain()
  const { isActive, consecutiveFailures } = await webhookOf(id)
  assert.deepEqual([isActive, consecutiveFailures, await actsOn(id)], [true, 0, []])
})

test('an endpoint that fails on five days is set inactive; what waits is sent when it is active again', async () => {
  let status = 500
  const { url, received } = await startReceiver((response) => response.writeHead(status).end())
  const { id } = await addWebhook(kernel, { url })
  for (let day = 0; day < 5; day++) {
    await addEvents(kernel, id)
    await workers.drain()
    assert.equal((await webhookOf(id)).isActive, true, `day ${day}`)
    clock.advance(DAY)
  }
  await workers.drain()
  const { isActive, disabledReason } = await webhookOf(id)
  assert.equal(isActive, false)
  assert.match(disabledReason ?? '', /^Every attempt has failed since 20\d\d-/)
  assert.deepEqual(await actsOn(id), ['webhook.deactivated'])
  const before = received.length
  status = 200
  clock.advance(DAY)
  assert.equal(await workers.drain(), 0)
  await change(id, { isActive: true, disabledReason: null, ...NOT_FAILING })
  assert.equal(await workers.drain(), 5)
  assert.equal(received.length, before + 5)
})

test('an endpoint that failed once is not set inactive by one failure after quiet days', async () => {
  const { url } = await startReceiver((response) => response.writeHead(503).end())
  const { id } = await addWebhook(kernel, { url })
  await addEvents(kernel, id, 10)
  await workers.drain()
  await db.deleteFrom('webhookDelivery').where('webhookId', '=', id).execute()
  clock.advance(6 * DAY)
  await addEvents(kernel, id)
  await workers.drain()
  assert.equal((await webhookOf(id)).isActive, true)
  assert.deepEqual(await actsOn(id), [])
})

test('a success clears a failure that was written while it was under way', async () => {
  const held: ServerResponse[] = []
  const { url } = await startReceiver((response) => {
    if (held.length === 0) held.push(response)
    else response.writeHead(503).end()
  })
  const { id } = await addWebhook(kernel, { url })
  await addEvents(kernel, id, 2)
  const draining = workers.drain()
  while ((await webhookOf(id)).consecutiveFailures !== 1) await sleep(5)
  held[0]?.writeHead(200).end()
  await draining
  const { consecutiveFailures, failingSince, failingDays } = await webhookOf(id)
  assert.deepEqual([consecutiveFailures, failingSince, failingDays], [0, null, 0])
})

test('a redirect, a silent endpoint and a closed port are failures that the log explains', async () => {
  const redirecting = await startReceiver((response) =>
    response.writeHead(302, { location: '/inside' }).end(),
  )
  const silent = await startReceiver(() => {})
  for (const [url, error] of [
    [redirecting.url, /answered 302; redirects are not followed/],
    [silent.url, /did not answer within 1000 ms/],
    ['http://127.0.0.1:1', /ECONNREFUSED/],
    ['http://10.0.0.1', /address is refused: the address is in a private network/],
  ] as const) {
    const { id } = await addWebhook(kernel, { url, timeoutMs: 1_000 })
    await addEvents(kernel, id)
    await workers.drain()
    const [row] = await logOf(id)
    assert.equal(row?.status, 'retrying')
    assert.match(row?.error ?? '', error)
  }
  assert.deepEqual(
    redirecting.received.map(({ path }) => path),
    ['/'],
  )
})

test('the status decides, however long the body takes; the log keeps the first 4 KB as text', async () => {
  const endless = await startReceiver((response) => void response.writeHead(200).write('begun'))
  const large = await startReceiver(
    (response) => void response.writeHead(200).end(Buffer.alloc(10_000_000, 'é')),
  )
  const odd = await startReceiver((response) => response.end(Buffer.from([97, 0, 255, 254, 98, 0xc3])))
  const bodies: (string | null | undefined)[] = []
  for (const { url } of [endless, large, odd]) {
    const { id } = await addWebhook(kernel, { url, timeoutMs: 1_500 })
    await addEvents(kernel, id)
    await workers.drain()
    const [row] = await logOf(id)
    assert.equal(row?.status, 'succeeded')
    bodies.push(row?.responseBody)
  }
  assert.deepEqual(bodies, ['begun', 'é'.repeat(2_048), 'a\ufffd\ufffd\ufffdb\ufffd'])
})

test('an attempt uses the webhook as it is then', async () => {
  const [old, fresh] = [await startReceiver(), await startReceiver()]
  const { id } = await addWebhook(kernel, { url: old.url })
  await addEvents(kernel, id, 2)
  await change(id, { url: fresh.url })
  await workers.drain()
  assert.deepEqual([old.received.length, fresh.received.length], [0, 2])
  await addEvents(kernel, id)
  await change(id, { isActive: false })
  assert.equal(await workers.drain(), 0)
  await change(id, { isActive: true, deletedAt: kernel.now(), sealedSecret: null, sealedHeaders: null })
  assert.equal(await workers.drain(), 0)
  assert.equal(fresh.received.length, 2)
})
