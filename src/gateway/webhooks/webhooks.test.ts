import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { EVENTS } from '#kernel/events.ts'
import { atomically, emit } from '#kernel/kernel.ts'
import { secureRandom } from '#kernel/random.ts'
import { createSecrets } from '#kernel/secrets.ts'
import { withClient } from '#test/database.ts'
import { ADMIN_KEY, actor, TEST_SECRET, testService } from '#test/harness.ts'
import { ENDPOINT, FOR_CLIENT, webhookRequests } from '#test/webhooks.ts'
import { resealWebhooks } from './reseal.ts'

const t = await testService()
const { kernel } = t.service
const { make, made, at } = webhookRequests(t)

beforeEach(async () => {
  await kernel.db.deleteFrom('webhookDelivery').execute()
  await kernel.db.deleteFrom('webhook').execute()
  await kernel.coherence.settle()
})

test('a webhook shows its secret once, and the values of its headers never', async () => {
  const answer = await make({
    route_key: 'gateway_insert',
    table_name: 'track',
    headers: { Authorization: 'Bearer s3cret' },
  })
  const { secret, ...record } = answer.body.data
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.deepEqual(record, {
    id: record.id,
    client_name: 'default',
    route_key: 'gateway_insert',
    route_keys: ['gateway_insert'],
    table_name: 'public.track',
    url: ENDPOINT,
    description: null,
    is_active: true,
    headers: { authorization: '***' },
    filter: null,
    timeout_ms: 15_000,
    ...{ consecutive_failures: 0, disabled_reason: null, former_secrets_until: [] },
    ...{ created_at: record.created_at, created_by: null },
    updated_at: record.created_at,
  })
  assert.deepEqual((await t.admin.get(at(record.id), FOR_CLIENT)).body.data, record)
  const list = await t.admin.get('/admin/webhooks?client_name=default', FOR_CLIENT)
  const listed = { ...record, last_delivery: null }
  assert.deepEqual(list.body.data, { webhooks: [listed], total: 1, limit: 50, offset: 0 })
  const row = JSON.stringify(await kernel.db.selectFrom('webhook').selectAll().execute())
  assert.ok(!row.includes('s3cret') && !row.includes(secret), row)
  const none = await t.admin.get('/admin/webhooks?client_name=logging&limit=500', FOR_CLIENT)
  assert.deepEqual(none.body.data, { webhooks: [], total: 0, limit: 500, offset: 0 })
})

test('a webhook that could not work is refused, with the field that is wrong', async () => {
  const refused = async (body: object, code: string, field?: string) => {
    const answer = await make({ route_key: 'gateway_insert', ...body })
    assert.deepEqual([answer.status, answer.body.code], [400, code], JSON.stringify([body, answer.body]))
    if (field !== undefined) assert.equal(answer.body.data.details.field, field, answer.text)
  }
  for (const url of [
    'http://example.com',
    'https://127.0.0.1/',
    'https://[::ffff:10.0.0.1]/',
    'https://a:b@example.com',
    'ftp://x',
    'x',
  ])
    await refused({ url }, 'invalid_webhook_url', 'url')
  for (const route_key of ['nothing', 'gateway_*', 'auth_user_updated', 'constructor'])
    await refused({ route_key }, 'invalid_webhook', 'route_key')
  const close = await make({ route_key: 'gateway.insert' })
  assert.equal(close.body.error, 'Did you mean gateway_insert? List them with GET /admin/webhooks/events')
  await refused({ route_key: 'auth_user_created', client_name: 'default' }, 'invalid_webhook', 'client_name')
  await refused({ client_name: 'nobody' }, 'unknown_client')
  await refused({ route_key: 'gateway_query', table_name: 'track' }, 'invalid_webhook', 'table_name')
  await refused({ table_name: 'a.b.c' }, 'invalid_identifier')
  await refused(
    { route_key: 'schema_table_created', filter: { column: 'id', value: 1 } },
    'invalid_webhook',
    'filter',
  )
  for (const operator of ['like', 'ilike', 'contains', 'containedBy', 'overlaps', 'fts'])
    await refused({ filter: [{ operator, column: 'title', value: 'x' }] }, 'invalid_condition', 'filter')
  await refused({ filter: { page: '/' } }, 'invalid_condition', 'filter')
  await refused({ filter: [{ column: 'id', value: 1, value_cast: 'text' }] }, 'invalid_condition')
  await refused({ filter: [{ column: 'id', value: { a: 1 } }] }, 'invalid_condition')
  const many = Array(200).fill(1)
  await refused({ filter: [{ operator: 'in', column: 'id', value: many }] }, 'too_many_conditions')
  for (const name of ['Host', 'content-length', 'Webhook-Signature', 'transfer-encoding', 'a b', ''])
    await refused({ headers: { [name]: 'x' } }, 'invalid_webhook', 'headers')
  for (const value of ['a\r\nhost: b', 'ü', '', 'x'.repeat(8_193)])
    await refused(
      { headers: { 'x-a': value } },
      value.length > 8_192 ? 'validation_error' : 'invalid_webhook',
    )
  await refused({ headers: { 'X-A': '1', 'x-a': '2' } }, 'invalid_webhook', 'headers')
  await refused({ secret: 'whsec_c2hvcnQ=' }, 'invalid_webhook', 'secret')
  await refused({ timeout_ms: 30_001 }, 'validation_error')
  assert.equal((await t.admin.get('/admin/webhooks', FOR_CLIENT)).body.data.total, 0)
})

test('a webhook of an event that does not exist any more can be deactivated, but not activated', async () => {
  const id = await made({ route_key: 'gateway_insert' })
  await kernel.db
    .updateTable('webhook')
    .set({ routeKeys: ['gateway_truncate'] })
    .where('id', '=', id)
    .execute()
  const change = (is_active: boolean) => t.admin.send('PATCH', at(id), { body: { is_active }, ...FOR_CLIENT })
  assert.deepEqual([(await change(false)).status, (await change(true)).body.code], [200, 'invalid_webhook'])
})

test('stored headers are not sent to another origin: a new url gives them again, or none', async () => {
  const id = await made({ route_key: 'gateway_insert', headers: { authorization: 'Bearer s3cret' } })
  const change = (body: object) => t.admin.send('PATCH', at(id), { body, ...FOR_CLIENT })
  assert.equal((await change({ url: `${ENDPOINT}/other?path=1` })).status, 200)
  for (const url of ['https://elsewhere.example.com/in', `${new URL(ENDPOINT).origin}:8443/in`]) {
    const { status, body } = await change({ url })
    assert.deepEqual([status, body.code, body.data.details.field], [400, 'invalid_webhook', 'headers'])
  }
  assert.equal((await t.admin.get(at(id), FOR_CLIENT)).body.data.url, `${ENDPOINT}/other?path=1`)
  const moved = await change({ url: 'https://elsewhere.example.com/in', headers: { 'x-a': '1' } })
  assert.deepEqual(moved.body.data.headers, { 'x-a': '***' })
  const bare = await change({ url: ENDPOINT, headers: null })
  assert.deepEqual([bare.status, bare.body.data.headers], [200, {}])
  assert.equal((await change({ url: 'https://third.example.com/in' })).status, 200)
})

test('the catalogue has every event with an example', async () => {
  const { body } = await t.admin.get('/admin/webhooks/events', FOR_CLIENT)
  const { events } = body.data
  assert.deepEqual(
    events.map(({ route_key }: { route_key: string }) => route_key),
    Object.keys(EVENTS),
  )
  for (const { route_key, category, example } of events) {
    assert.equal(example.type, route_key)
    assert.equal(example.client, category === 'auth' ? null : 'default')
    assert.ok(Object.keys(example.data).length > 0)
  }
})

test('a rotated secret keeps the former one for a day, and both survive a rotation of the service secret', async () => {
  const answer = await make({ route_key: 'gateway_insert', headers: { 'x-a': 'value' } })
  const { id, secret: first } = answer.body.data
  const { secret: second, ...record } = (await t.admin.post(at(id, '/rotate-secret'), {}, FOR_CLIENT)).body
    .data
  assert.notEqual(first, second)
  assert.equal(record.id, id)
  const next = 'another-secret-of-the-tests-0123456789'
  const rotating = createSecrets(next, secureRandom, TEST_SECRET)
  await resealWebhooks({ ...kernel, secrets: rotating })
  const opened = async () => {
    const row = await kernel.db
      .selectFrom('webhook')
      .selectAll()
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
    const alone = createSecrets(next, secureRandom)
    const open = (sealed: string | null, purpose: 'webhook-secret' | 'webhook-headers') =>
      sealed === null ? null : alone.open(purpose, sealed, id)
    return [
      open(row.sealedSecret, 'webhook-secret'),
      ...row.sealedFormerSecrets.map((sealed) => open(sealed, 'webhook-secret')),
      open(row.sealedHeaders, 'webhook-headers'),
    ]
  }
  assert.deepEqual(await opened(), [second, first, '{"x-a":"value"}'])
  t.advance(86_400_001)
  await resealWebhooks(kernel)
  assert.deepEqual(await opened(), [second, '{"x-a":"value"}'])
})

test('a removed client takes its webhooks out of use: its name may come to mean another database', async () => {
  const body = { client_name: 'shop', url: t.clientUrl }
  const registered = await t.admin.post('/admin/clients', body)
  assert.equal(registered.status, 201, registered.text)
  const id = await made({ route_key: 'gateway_insert', client_name: 'shop' })
  await t.admin.send('DELETE', '/admin/clients/shop')
  const { is_active, disabled_reason } = (await t.admin.get(at(id), FOR_CLIENT)).body.data
  assert.deepEqual([is_active, disabled_reason], [false, 'Its client was removed'])
})

const texts = async () =>
  (await kernel.db.selectFrom('webhookEvent').select('body').orderBy('routeKey').execute()).map(
    ({ body }) => body,
  )

test('events of users are written with their transaction, and only for webhooks that name them', async () => {
  await made({ route_key: '*' })
  await made({ route_key: 'auth_user_deleted' })
  const named = await made({ route_key: 'auth_user_created' })
  const all = await made({ route_key: 'auth.*' })
  assert.equal((await t.admin.get(at(all), FOR_CLIENT)).body.data.client_name, null)
  const ada = await t.signUp('ada')
  const bodies = await texts()
  const [created, signedIn, ...more] = bodies.map((text) => JSON.parse(text))
  assert.deepEqual(more, [])
  const facts = { user_id: ada.id, actor: { kind: 'user', id: ada.id } }
  assert.deepEqual([created.type, created.client, created.data], ['auth_user_created', null, facts])
  assert.match(created.request_id, /^[0-9a-f-]{36}$/)
  assert.equal(signedIn.request_id, created.request_id)
  const members = ['user_id', 'session_id', 'actor']
  assert.deepEqual([signedIn.type, Object.keys(signedIn.data)], ['auth_user_signed_in', members])
  const receivers = await kernel.db.selectFrom('webhookDelivery').select('webhookId').execute()
  assert.deepEqual(receivers.map(({ webhookId }) => webhookId).toSorted(), [named, all, all].toSorted())
  assert.equal(
    bodies.some((text) => text.includes(ada.token) || text.includes('ada@')),
    false,
  )

  const broken = new Error('no')
  const work = atomically(kernel, async (kernel) => {
    await emit(kernel, 'auth_user_banned', { user_id: ada.id })
    throw broken
  })
  await assert.rejects(work, broken)
  assert.equal((await texts()).length, 2)
})

test('every webhook route needs the admin key first, and then a client that exists', async () => {
  const key = await t.key(['*'])
  const operator = t.admin.headers
  const routes = t.service.book.entries().filter(({ path }) => path.startsWith('/admin/webhooks'))
  assert.ok(routes.length >= 7)
  for (const { method, path } of routes) {
    const url = path.replaceAll(/\{\w+\}/g, '01a1fed6-8936-7ac3-bdf5-1fc3f49efcc6')
    const ask = async (headers: Record<string, string>) => {
      const { status, body } = await actor(t.url, headers).send(
        method,
        url,
        method === 'GET' ? {} : { raw: '{' },
      )
      return [status, body.code]
    }
    const { apikey: _, ...plain } = operator
    const client = FOR_CLIENT.headers
    assert.deepEqual(await ask(client), [401, 'api_key_required'], `${method} ${url}`)
    assert.deepEqual(await ask({ apikey: 'wrong' }), [401, 'invalid_api_key'])
    assert.deepEqual(await ask({ ...client, 'x-service-admin-key': 'wrong' }), [401, 'invalid_api_key'])
    assert.deepEqual(await ask({ apikey: key.apiKey, ...client }), [403, 'insufficient_rights'])
    assert.deepEqual(await ask({ ...plain, 'x-service-admin-key': ADMIN_KEY }), [
      400,
      'missing_client_header',
    ])
    assert.deepEqual(await ask({ apikey: ADMIN_KEY, 'x-service-client': 'nobody' }), [400, 'unknown_client'])
    const [status] = await ask({ 'x-service-admin-key': ADMIN_KEY, ...client })
    assert.ok(status === 200 || status === 400 || status === 404, `${method} ${url}: ${status}`)
  }
})

const receivers = async () =>
  (await kernel.db.selectFrom('webhookDelivery').select('webhookId').execute()).map(
    ({ webhookId }) => webhookId,
  )
const createTracks = (url: string) =>
  withClient(url, (client) => client.query('create table track (id bigint primary key, rating numeric)'))

test('a filter outlasts limits that were lowered later, and decides as before', async () => {
  const rating = { operator: 'gt', column: 'rating', value: 3 }
  const nested = await made({
    route_key: 'gateway_insert',
    filter: [rating, { or: [{ and: [{ not: { column: 'id', value: 1 } }] }] }],
  })
  const plain = await made({ route_key: 'gateway_insert' })
  const strict = await testService({
    controlUrl: t.controlUrl,
    config: { limits: { conditions: 1, nesting: 1 } },
  })
  await createTracks(strict.clientUrl)
  const { headers } = await strict.key(['*'])
  const insertStrict = (id: number, rating: number) =>
    actor(strict.url, headers).post('/gateway/insert', { table_name: 'track', insert_body: { id, rating } })
  const met = await insertStrict(2, 4)
  assert.deepEqual([met.status, met.headers.get('x-service-events')], [200, null], met.text)
  assert.deepEqual((await receivers()).toSorted(), [nested, plain].toSorted())
  await insertStrict(3, 1)
  assert.equal((await receivers()).length, 3, 'only the one without a filter')
  const change = (body: object) => strict.admin.send('PATCH', at(nested), { body, ...FOR_CLIENT })
  assert.equal((await change({ description: 'kept' })).status, 200)
  assert.equal((await change({ filter: [rating, rating] })).body.code, 'too_many_conditions')
})

test('a filter that cannot be judged delivers its event, and no other webhook loses it', async () => {
  const webhooks = [await made({ route_key: 'gateway_insert' }), await made({ route_key: 'gateway_insert' })]
  await kernel.db
    .updateTable('webhook')
    .set({ filter: '[{"operator":"later","column":"id","value":1}]', updatedAt: kernel.now() })
    .where('id', '=', webhooks[0] ?? '')
    .execute()
  await kernel.coherence.settle()
  await createTracks(t.clientUrl)
  const key = await t.key(['*'])
  const answer = await key.post('/gateway/insert', { table_name: 'track', insert_body: { id: 1 } })
  assert.deepEqual([answer.status, answer.headers.get('x-service-events')], [200, null])
  assert.deepEqual((await receivers()).toSorted(), webhooks.toSorted())
  assert.equal(t.log.filter((line) => line.includes('webhook_filter_failed')).length, 1)
})
