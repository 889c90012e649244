import assert from 'node:assert/strict'
import { test } from 'node:test'
import { uuidv7 } from '#kernel/random.ts'
import { type Actor, actor, testClock, testService } from '#test/harness.ts'
import { TO_LOOPBACK } from '#test/identity-provider/visits.ts'
import { byBearer, operatorOf } from '#test/operators.ts'
import { addEvents, addWebhook, startReceiver } from '#test/webhooks.ts'

const roles = {
  watcher: { operator: ['webhooks' as const], gateway: { default: ['notes.read'] } },
  reader: { operator: ['webhooks' as const], gateway: { default: ['gateway.read'] } },
}
const clock = testClock()
const t = await testService({ config: { outbound: TO_LOOPBACK, auth: { admin: { roles } } }, clock })
const { kernel, deliveries: workers } = t.service
const { db } = kernel
const admin = actor(t.url, { ...t.admin.headers, 'x-service-client': 'default' })
const unknown = uuidv7(new Date(), kernel.random)

const refusal = ({ status, body }: { status: number; body: { code: string } }) => [status, body.code]
const replay = (who: Actor, id: string, body: object = { status: 'failed' }) =>
  who.post(`/admin/webhooks/${id}/replay`, body)
const waitingOf = async (id: string) => {
  const rows = db.selectFrom('webhookDelivery').select('id').where('webhookId', '=', id)
  return (await rows.where('status', '=', 'retrying').execute()).length
}

/** A webhook with failed deliveries. */
async function failed(count: number, url = 'https://hooks.example.com/in') {
  const { id } = await addWebhook(kernel, { url })
  await addEvents(kernel, id, count)
  await db
    .updateTable('webhookDelivery')
    .set({ status: 'failed', attempt: 8, nextAttemptAt: null })
    .where('webhookId', '=', id)
    .execute()
  return id
}

test('one delivery shows the body that was sent, as text with every digit', async () => {
  const { url, received } = await startReceiver((response) => response.end('<b>seen</b>'))
  const { id } = await addWebhook(kernel, { url })
  await addEvents(kernel, id)
  await workers.drain()
  const [listed] = (await admin.get(`/admin/webhooks/${id}/deliveries`)).body.data.deliveries
  const { body } = await admin.get(`/admin/webhooks/${id}/deliveries/${listed.id}`)
  assert.deepEqual(body.data, { ...listed, request_body: received[0]?.body })
  assert.equal(body.data.response_body, '<b>seen</b>')
  for (const [webhook, delivery, code] of [
    [id, unknown, 'delivery_not_found'],
    [(await addWebhook(kernel, { url })).id, listed.id, 'delivery_not_found'],
    [unknown, listed.id, 'webhook_not_found'],
  ])
    assert.deepEqual(refusal(await admin.get(`/admin/webhooks/${webhook}/deliveries/${delivery}`)), [
      404,
      code,
    ])
})

test('a session that may not read what a webhook sends sees no body and replays nothing', async () => {
  const watcher = byBearer(t, await operatorOf(t, 'watcher'))
  const reader = byBearer(t, await operatorOf(t, 'reader'))
  const id = await failed(1)
  const [{ id: delivery }] = (await admin.get(`/admin/webhooks/${id}/deliveries`)).body.data.deliveries
  const bodyFor = async (who: Actor) =>
    (await who.get(`/admin/webhooks/${id}/deliveries/${delivery}`)).body.data.request_body
  assert.equal(await bodyFor(watcher), null)
  assert.equal(JSON.parse(await bodyFor(reader)).type, 'gateway_insert')
  assert.deepEqual(refusal(await replay(watcher, id)), [403, 'insufficient_rights'])
  assert.equal(await waitingOf(id), 0)
  // Before its change it may have had rows of every table.
  await db.updateTable('webhook').set({ reachChangedAt: kernel.now() }).where('id', '=', id).execute()
  assert.equal(await bodyFor(reader), null)
  assert.deepEqual(refusal(await replay(reader, id)), [403, 'insufficient_rights'])
  assert.equal(await waitingOf(id), 0)
})

test('failed deliveries are replayed by a thousand, and the trail counts them', async () => {
  const id = await failed(1_500)
  const [other] = await addEvents(kernel, id)
  const first = (await replay(admin, id)).body.data
  assert.equal(first.replayed, 1_000)
  const second = (await replay(admin, id, { status: 'failed', cursor: first.next_cursor })).body.data
  assert.deepEqual(second, { replayed: 500, next_cursor: null })
  assert.deepEqual((await replay(admin, id)).body.data, { replayed: 0, next_cursor: null })
  assert.equal(await waitingOf(id), 1_500)
  const pending = db
    .selectFrom('webhookDelivery')
    .select('status')
    .where('eventId', '=', other ?? '')
  assert.deepEqual(await pending.execute(), [{ status: 'pending' }])
  const told = await db
    .selectFrom('auditEvent')
    .select(['action', 'actorId', 'count'])
    .where('targetId', '=', id)
    .orderBy('id')
    .execute()
  assert.deepEqual(told, [
    { action: 'webhook.deliveries_replayed', actorId: 'admin-key', count: 1_000 },
    { action: 'webhook.deliveries_replayed', actorId: 'admin-key', count: 500 },
  ])
  await db.updateTable('webhook').set({ isActive: false }).where('id', '=', id).execute()
})

test('a replay is sent at once, and refused for a webhook that is inactive, unknown or by another state', async () => {
  const { url, received } = await startReceiver()
  const id = await failed(2, url)
  assert.equal((await replay(admin, id)).body.data.replayed, 2)
  await workers.drain()
  assert.equal(received.length, 2)
  for (const body of [{}, { status: 'pending' }, { status: 'failed', cursor: 'x' }])
    assert.equal((await replay(admin, id, body)).status, 400)
  assert.deepEqual(refusal(await replay(admin, unknown)), [404, 'webhook_not_found'])
  await db.updateTable('webhook').set({ isActive: false }).where('id', '=', id).execute()
  assert.deepEqual(refusal(await replay(admin, id)), [409, 'webhook_inactive'])
})

test('the list names the last delivery of each webhook, and shows those that fail', async () => {
  await db.updateTable('webhook').set({ deletedAt: kernel.now() }).execute()
  let status = 200
  const { url } = await startReceiver((response) => response.writeHead(status).end())
  const fine = await addWebhook(kernel, { url })
  clock.advance(1)
  const failing = await addWebhook(kernel, { url })
  clock.advance(1)
  const { id: off } = await addWebhook(kernel, { url, isActive: false })
  await addEvents(kernel, fine.id)
  await workers.drain()
  status = 503
  await addEvents(kernel, failing.id, 2)
  await workers.drain()
  const listed = async (query = '') =>
    (await admin.get(`/admin/webhooks${query}`)).body.data.webhooks.map(
      ({ id, last_delivery: last }: { id: string; last_delivery: Record<string, unknown> | null }) => [
        id,
        last?.status,
        last?.response_status,
      ],
    )
  assert.deepEqual(await listed(), [
    [fine.id, 'succeeded', 200],
    [failing.id, 'retrying', 503],
    [off, undefined, undefined],
  ])
  assert.deepEqual(await listed('?state=failing'), [[failing.id, 'retrying', 503]])
  assert.deepEqual(await listed('?state=inactive'), [[off, undefined, undefined]])
  assert.equal((await listed('?state=active&client_name=default')).length, 2)
  assert.equal((await admin.get('/admin/webhooks?state=other')).status, 400)
})

test('a rotation says until when the former secret signs', async () => {
  const { id } = await addWebhook(kernel, { url: 'https://hooks.example.com/in' })
  const { data } = (await admin.post(`/admin/webhooks/${id}/rotate-secret`, undefined)).body
  const until = new Date(new Date(data.updated_at).getTime() + 86_400_000).toISOString()
  assert.deepEqual(data.former_secrets_until, [until])
  clock.advance(86_400_000)
  assert.deepEqual((await admin.get(`/admin/webhooks/${id}`)).body.data.former_secrets_until, [])
})
