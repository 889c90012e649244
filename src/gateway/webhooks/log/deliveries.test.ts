import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { uuidv7 } from '#kernel/random.ts'
import { actor, testClock, testService } from '#test/harness.ts'
import { TO_LOOPBACK } from '#test/identity-provider/visits.ts'
import { addEvents, addWebhook, startReceiver, verified } from '#test/webhooks.ts'
import { countReplay, replayDeliveries } from './replay.ts'

const DAY = 86_400_000
const clock = testClock()
const rate_limits = { enabled: true, rules: { webhook_test: { requests: 3, window: 60_000 } } }
const t = await testService({ config: { outbound: TO_LOOPBACK, rate_limits }, clock })
const { kernel, deliveries: workers } = t.service
const { db } = kernel
const admin = actor(t.url, { ...t.admin.headers, 'x-service-client': 'default' })

const unknown = uuidv7(new Date(), kernel.random)
const refusal = ({ status, body }: { status: number; body: { code: string } }) => [status, body.code]
const deliveriesOf = async (id: string, query = '') =>
  (await admin.get(`/admin/webhooks/${id}/deliveries${query}`)).body.data

test('deliveries are listed newest first, by pages and by status, with a total', async () => {
  let status = 200
  const { url } = await startReceiver((response) => response.writeHead(status).end('seen'))
  const { id } = await addWebhook(kernel, { url })
  const events: string[] = []
  for (status of [200, 500, 204]) {
    events.unshift(...(await addEvents(kernel, id)))
    await workers.drain()
  }
  events.unshift(...(await addEvents(kernel, id)))
  const all = await deliveriesOf(id)
  assert.deepEqual(
    all.deliveries.map((one: Record<string, unknown>) => [
      one.event_id,
      one.status,
      one.attempt,
      one.response_status,
    ]),
    [
      [events[0], 'pending', 0, null],
      [events[1], 'succeeded', 1, 204],
      [events[2], 'retrying', 1, 500],
      [events[3], 'succeeded', 1, 200],
    ],
  )
  assert.deepEqual([all.total, all.total_estimated, all.limit, all.offset], [4, false, 50, 0])
  const [, , retrying] = all.deliveries
  assert.deepEqual(Object.keys(retrying).toSorted(), [
    ...['attempt', 'created_at', 'duration_ms', 'error', 'event_id', 'id', 'next_attempt_at'],
    ...['response_body', 'response_status', 'route_key', 'status'],
  ])
  assert.deepEqual([retrying.route_key, retrying.error], ['gateway_insert', 'The endpoint answered 500.'])
  const page = await deliveriesOf(id, '?status=succeeded&limit=1&offset=1')
  assert.deepEqual(
    [page.total, page.deliveries.map((one: { event_id: string }) => one.event_id)],
    [2, [events[3]]],
  )
  for (const query of ['?status=lost', '?limit=0', '?limit=501', '?offset=-1'])
    assert.equal((await admin.get(`/admin/webhooks/${id}/deliveries${query}`)).status, 400)
  assert.deepEqual(refusal(await admin.get(`/admin/webhooks/${unknown}/deliveries`)), [
    404,
    'webhook_not_found',
  ])
})

test('more than ten thousand deliveries have an estimated total, until the last page', async () => {
  const { id } = await addWebhook(kernel, { url: 'https://hooks.example.com/in' })
  const [event = ''] = await addEvents(kernel, id)
  await sql`insert into service.webhook_delivery (id, webhook_id, event_id, status, created_at)
    select gen_random_uuid(), ${id}, ${event}, 'succeeded', now() from generate_series(1, 10100)`.execute(db)
  const page = await deliveriesOf(id, '?limit=1')
  assert.deepEqual([page.deliveries.length, page.total_estimated], [1, true])
  assert.ok(page.total > 10_000)
  const last = await deliveriesOf(id, '?offset=10100')
  assert.deepEqual([last.deliveries.length, last.total, last.total_estimated], [1, 10_101, false])
  await sql`delete from service.webhook_delivery where webhook_id = ${id}`.execute(db)
})

test('a delivery is made again with all its attempts and the same event, if no attempt is under way', async () => {
  const { url, received } = await startReceiver((response) => response.writeHead(410).end())
  const { id } = await addWebhook(kernel, { url })
  await addEvents(kernel, id)
  await workers.drain()
  const [failed] = (await deliveriesOf(id)).deliveries
  const retry = (delivery: string, webhook = id) =>
    admin.post(`/admin/webhooks/${webhook}/deliveries/${delivery}/retry`, undefined)
  assert.deepEqual(refusal(await retry(failed.id)), [409, 'webhook_inactive'])
  await db
    .updateTable('webhook')
    .set({ isActive: true, url: `${url}/again` })
    .where('id', '=', id)
    .execute()
  await kernel.coherence.settle()
  const { status, body } = await retry(failed.id)
  assert.deepEqual(
    [status, body.data.status, body.data.attempt, body.data.event_id],
    [200, 'retrying', 0, failed.event_id],
  )
  await db
    .updateTable('webhookDelivery')
    .set({ claimedUntil: new Date(kernel.now().getTime() + 60_000) })
    .where('id', '=', failed.id)
    .execute()
  assert.deepEqual(refusal(await retry(failed.id)), [409, 'delivery_in_flight'])
  assert.deepEqual(refusal(await retry(unknown)), [404, 'delivery_not_found'])
  const other = await addWebhook(kernel, { url })
  assert.deepEqual(refusal(await retry(failed.id, other.id)), [404, 'delivery_not_found'])
  clock.advance(61_000)
  await workers.drain()
  assert.deepEqual(
    received.map(({ path, id }) => [path, id]),
    [
      ['/', failed.event_id],
      ['/again', failed.event_id],
    ],
  )
})

test('a test sends one signed example now and answers with its delivery, whatever the endpoint answers', async () => {
  let status = 200
  const { url, received } = await startReceiver((response) => response.writeHead(status).end('seen'))
  const { id, secret } = await addWebhook(kernel, { url, routeKey: 'auth.*', isActive: false })
  const path = `/admin/webhooks/${id}/test`
  const { body: accepted } = await admin.post(path, undefined)
  const [event] = received
  assert.ok(event)
  const payload = verified(secret, event) as { type: string; test: boolean; id: string; data: object }
  assert.deepEqual([payload.type, payload.test, payload.id], ['auth_user_created', true, event.id])
  assert.deepEqual(
    [
      accepted.data.status,
      accepted.data.response_status,
      accepted.data.response_body,
      accepted.data.event_id,
    ],
    ['succeeded', 200, 'seen', event.id],
  )
  status = 410
  const { body: gone } = await admin.post(path, undefined)
  assert.deepEqual(
    [gone.data.status, gone.data.response_status, gone.data.next_attempt_at],
    ['failed', 410, null],
  )
  await db.updateTable('webhook').set({ url: 'http://127.0.0.1:1' }).where('id', '=', id).execute()
  const { body: refused } = await admin.post(path, undefined)
  assert.match(refused.message, /ECONNREFUSED/)
  // Another spelling of the id has no limit of its own.
  const limited = await admin.post(`/admin/webhooks/${id.toUpperCase()}/test`, undefined)
  assert.deepEqual(refusal(limited), [429, 'too_many_requests'])
  assert.ok(Number(limited.headers.get('retry-after')) > 0)
  const { deliveries } = await deliveriesOf(id)
  assert.deepEqual(
    deliveries.map((one: { status: string }) => one.status),
    ['failed', 'failed', 'succeeded'],
  )
  clock.advance(DAY)
  await workers.drain()
  assert.equal(received.length, 2, 'a test is made once')
  const webhook = await db
    .selectFrom('webhook')
    .select(['consecutiveFailures', 'disabledReason'])
    .where('id', '=', id)
    .executeTakeFirst()
  assert.deepEqual(webhook, { consecutiveFailures: 0, disabledReason: null })
  assert.deepEqual(refusal(await admin.post(`/admin/webhooks/${unknown}/test`, undefined)), [
    404,
    'webhook_not_found',
  ])
})

test('a test is in the audit trail before it is sent, so that none is sent unseen', async () => {
  const { url, received } = await startReceiver()
  const { id } = await addWebhook(kernel, { url })
  const acts = () => db.selectFrom('auditEvent').select('details').where('targetId', '=', id).execute()
  const rename = (from: string, to: string) =>
    sql`alter table ${sql.table(`service.${from}`)} rename to ${sql.ref(to)}`.execute(db)
  await rename('audit_event', 'gone')
  const refused = await admin
    .post(`/admin/webhooks/${id}/test`, undefined)
    .finally(() => rename('gone', 'audit_event'))
  assert.deepEqual([refused.status >= 500, received.length], [true, 0])
  const { body } = await admin.post(`/admin/webhooks/${id}/test`, undefined)
  assert.deepEqual(
    [received.length, (await acts()).map(({ details }) => details)],
    [1, [{ deliveryId: body.data.id }]],
  )
})

test('at most ten tests run at once in a process', async () => {
  const { url, received } = await startReceiver(() => {})
  const ids: string[] = []
  for (let n = 0; n < 11; n++) ids.push((await addWebhook(kernel, { url, timeoutMs: 3_000 })).id)
  const running = ids.slice(0, 10).map((id) => admin.post(`/admin/webhooks/${id}/test`, undefined))
  while (received.length < 10) await sleep(5)
  assert.deepEqual(refusal(await admin.post(`/admin/webhooks/${ids[10]}/test`, undefined)), [
    503,
    'service_unavailable',
  ])
  for (const { body } of await Promise.all(running))
    assert.equal(body.data.error, 'The endpoint did not answer within 3000 ms.')
})

test('a replay makes all failed deliveries due again, and no others', async () => {
  const { url, received } = await startReceiver()
  const { id } = await addWebhook(kernel, { url })
  await addEvents(kernel, id, 2_500)
  await db
    .updateTable('webhookDelivery')
    .set({ status: 'failed', attempt: 8, nextAttemptAt: null })
    .where('webhookId', '=', id)
    .execute()
  const later = new Date(kernel.now().getTime() + 1)
  clock.advance(10)
  await addEvents(kernel, id, 3)
  await db
    .updateTable('webhookDelivery')
    .set({ status: 'failed', nextAttemptAt: null })
    .where('webhookId', '=', id)
    .execute()
  const steps: number[] = []
  const recent = { webhookId: id, status: 'failed', since: later } as const
  assert.equal(await countReplay(db, recent), 3)
  assert.equal(await replayDeliveries(kernel, recent, () => {}), 3)
  assert.equal(
    await replayDeliveries(kernel, { ...recent, since: new Date(0) }, (count) => steps.push(count)),
    2_500,
  )
  assert.deepEqual(steps, [1_000, 1_000, 500])
  const due = await db
    .selectFrom('webhookDelivery')
    .select('id')
    .where('webhookId', '=', id)
    .where('attempt', '=', 0)
    .where('nextAttemptAt', 'is not', null)
    .execute()
  assert.equal(due.length, 2_503)
  await db.updateTable('webhook').set({ isActive: false }).where('id', '=', id).execute()
  assert.equal(received.length, 0)
})
