import assert from 'node:assert/strict'
import { before, beforeEach, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { documentedPayloads } from '#test/openapi.ts'
import { ENDPOINT, FOR_CLIENT, webhookRequests } from '#test/webhooks.ts'

const t = await testService()
const { kernel } = t.service
const key = await t.key(['*'])
const { made, at } = webhookRequests(t)
const actor = { kind: 'api_key', id: key.keyId }

type Payload = { type: string; data: Record<string, unknown> }

before(() =>
  withClient(t.clientUrl, (client) =>
    client.query(`
      create table track (id bigint primary key, title text, rating numeric, at timestamptz);
      create table other (id int primary key);
      create function double_of(n int) returns int language sql immutable return n * 2;
      insert into track select n, repeat('x', 300), n, '2026-01-31' from generate_series(1, 2000) n`),
  ),
)

beforeEach(async () => {
  await kernel.db.deleteFrom('webhookDelivery').execute()
  await kernel.db.deleteFrom('webhookEvent').execute()
  await kernel.db.deleteFrom('webhook').execute()
  await kernel.coherence.settle()
})

const texts = async (): Promise<string[]> =>
  (await kernel.db.selectFrom('webhookEvent').select('body').orderBy('routeKey').execute()).map(
    ({ body }) => body,
  )
const isDocumented = documentedPayloads((await t.anon.get('/openapi.json')).body)
const payloads = async (): Promise<Payload[]> => {
  const all = (await texts()).map((text) => JSON.parse(text))
  all.forEach(isDocumented)
  return all
}
const types = async () => (await payloads()).map(({ type }) => type)
const receivers = async () =>
  (await kernel.db.selectFrom('webhookDelivery').select('webhookId').execute()).map(
    ({ webhookId }) => webhookId,
  )

const insert = (body: object, headers: Record<string, string> = {}) =>
  key.send('PUT', '/gateway/insert', { body: { table_name: 'track', ...body }, headers })

test('an operation writes its event with the rows that it returned, digit by digit', async () => {
  const webhook = await made({ route_key: '*' })
  const answer = await insert({ insert_body: { id: '9007199254740993', title: 'a"b', rating: '1.10' } })
  const [text = ''] = await texts()
  const { id, timestamp, ...payload } = JSON.parse(text)
  assert.match(text, /"rows":\[\{"id":9007199254740993,"title":"a\\"b","rating":1\.10,"at":null\}\]\}\}$/)
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/)
  assert.ok(Math.abs(Date.parse(timestamp) - kernel.now().getTime()) < 60_000)
  assert.deepEqual(payload, {
    type: 'gateway_insert',
    client: 'default',
    request_id: answer.headers.get('x-request-id'),
    data: { table: 'public.track', affected_rows: 1, actor, rows: JSON.parse(answer.text).data },
  })
  assert.deepEqual(await receivers(), [webhook])

  const conditions = [{ column: 'id', value: '9007199254740993' }]
  await key.post('/gateway/update', {
    table_name: 'track',
    set: { title: 'c' },
    conditions,
    columns: ['title'],
  })
  await key.post('/gateway/fetch', { table_name: 'track', conditions, head: true })
  await key.get('/data?view=track&eq_column=id&eq_value=1&columns=id')
  await key.post('/gateway/delete', { table_name: 'track', conditions, columns: ['at'] })
  await key.post('/gateway/query', { query: 'select 1 as one' })
  await key.get('/rpc/double_of?n=2')
  const rest = (await payloads()).filter(({ type }) => type !== 'gateway_insert')
  assert.deepEqual(
    rest.map(({ type, data }) => [type, data]),
    [
      ['gateway_data', { table: 'public.track', affected_rows: 0, actor, rows: [{ id: 1 }] }],
      [
        'gateway_delete',
        { table: 'public.track', affected_rows: 1, actor, rows: [{ at: null }], old_rows: [{ at: null }] },
      ],
      ['gateway_fetch', { table: 'public.track', affected_rows: 0, actor }],
      ['gateway_query', { affected_rows: 0, actor, rows: [{ one: 1 }] }],
      ['gateway_rpc', { function: 'public.double_of', affected_rows: 0, actor, rows: [{ double_of: 4 }] }],
      ['gateway_update', { table: 'public.track', affected_rows: 1, actor, rows: [{ title: 'c' }] }],
    ],
  )
})

test('more than 256 KB of rows are left out of the event, and the caller gets them all', async () => {
  const all = { table_name: 'track', limit: 2000, sort_by: { field: 'id' } }
  const without = await key.post('/gateway/fetch', all)
  await made({ route_key: 'gateway_fetch', filter: { column: 'id', value: -1 } })
  const answer = await key.post('/gateway/fetch', all)
  assert.equal(answer.body.data.length, 2000)
  assert.deepEqual(answer.body, without.body)
  const [payload] = await payloads()
  assert.deepEqual(payload?.data, { table: 'public.track', affected_rows: 0, actor, rows_omitted: true })
  const some = await key.post('/gateway/fetch', { ...all, limit: 700 })
  assert.equal(some.body.data.length, 700)
  assert.equal((await payloads()).length, 1, 'none of the 700 rows, which fit, meets the filter')
})

test('only webhooks of the client, the event and the table get it, and without one nothing is written', async () => {
  await insert({ insert_body: { id: 10_000 } })
  await made({ route_key: 'gateway_update' })
  await made({ route_key: 'gateway_insert', table_name: 'public.other' })
  await made({ route_key: 'gateway_insert', client_name: 'logging' })
  await made({ route_key: 'gateway_insert', is_active: false })
  await made({ route_key: 'schema.*' })
  await made({ route_key: 'auth.*' })
  const failed = await insert({ insert_body: { id: 10_000 } })
  assert.equal(failed.status, 409)
  await insert({ insert_body: { id: 10_001 } })
  assert.deepEqual([await texts(), await receivers()], [[], []])
  const wanted = [
    await made({ route_key: 'gateway.*' }),
    await made({ route_key: '*' }),
    await made({ route_key: 'gateway_insert', table_name: 'track' }),
  ]
  await insert({ insert_body: { id: 10_002 } })
  assert.equal((await texts()).length, 1)
  assert.deepEqual((await receivers()).toSorted(), wanted.toSorted())
})

test('a filter lets through events with a row that meets it', async () => {
  await made({
    route_key: 'gateway_insert',
    filter: [
      { operator: 'gt', column: 'rating', value: 3 },
      { operator: 'or', value: 'title.eq.a,title.is.null' },
    ],
  })
  await insert({ insert_body: { id: 20_000, rating: 3, title: 'a' } })
  await insert({ insert_body: { id: 20_001, rating: 4, title: 'b' } })
  assert.deepEqual(await types(), [])
  await insert({
    insert_body: [
      { id: 20_003, rating: 1 },
      { id: 20_004, rating: 4 },
    ],
    columns: ['id', 'stars:rating', 'title'],
  })
  assert.deepEqual(
    (await payloads()).map(({ data }) => data.rows),
    [
      [
        { id: 20_003, stars: 1, title: null },
        { id: 20_004, stars: 4, title: null },
      ],
    ],
  )
})

test('a filter keeps its digits, and answers as it was given', async () => {
  const filter = '[{"column":"id","value":9223372036854775807}]'
  const raw = `{"route_key":"gateway_insert","url":"${ENDPOINT}","filter":${filter}}`
  const answer = await t.admin.send('POST', '/admin/webhooks', { raw, ...FOR_CLIENT })
  assert.ok(answer.text.includes(`"filter":${filter}`), answer.text)
  await insert({ insert_body: { id: '9223372036854775806' } })
  await insert({ insert_body: { id: '9223372036854775807' } })
  assert.equal((await texts()).length, 1)
  const changed = await t.admin.send('PATCH', at(answer.body.data.id), {
    body: { filter: null },
    ...FOR_CLIENT,
  })
  assert.equal(changed.body.data.filter, null, changed.text)
})

test('a transaction has an event for each operation after the commit, and a replay has none', async () => {
  await made({ route_key: 'gateway.*' })
  const operations = (id: number) => [
    {
      id: 'one',
      kind: 'insert',
      payload: { table_name: 'track', insert_body: { id, rating: 1 }, columns: ['id'] },
    },
    {
      id: 'two',
      kind: 'update',
      payload: {
        table_name: 'track',
        set: { rating: 2 },
        conditions: [{ column: 'id', value: id }],
        columns: ['rating'],
      },
    },
    {
      id: 'three',
      kind: 'fetch',
      payload: { table_name: 'track', conditions: [{ column: 'id', value: id }], columns: ['id', 'rating'] },
    },
  ]
  const run = (id: number) =>
    key.post('/gateway/transaction', { operations: operations(id), idempotency_key: 'once' })
  await run(30_000)
  const found = (await payloads()).map(({ type, data }) => [type, data.rows])
  assert.deepEqual(found, [
    ['gateway_fetch', [{ id: 30_000, rating: 2 }]],
    ['gateway_insert', [{ id: 30_000 }]],
    ['gateway_update', [{ rating: 2 }]],
  ])
  assert.equal((await run(30_000)).headers.get('idempotency-replayed'), 'true')
  assert.equal((await key.post('/gateway/transaction', { operations: operations(30_000) })).status, 409)
  assert.equal((await texts()).length, 3)
})

test('inserts that share a statement have an event each', async () => {
  await made({ route_key: 'gateway_insert' })
  const ids = Array.from({ length: 10 }, (_, index) => 40_000 + index)
  await Promise.all(
    ids.map((id) => insert({ insert_body: { id }, columns: ['id'] }, { 'x-service-insert-window': '50' })),
  )
  const rows = (await payloads()).map(({ data }) => JSON.stringify(data.rows))
  assert.deepEqual(
    rows.toSorted(),
    ids.map((id) => `[{"id":${id}}]`),
  )
})

test('a changed webhook follows its new fields, and a deleted one is gone without its secrets', async () => {
  const id = await made({ route_key: 'gateway_insert', headers: { 'x-a': '1' } })
  const change = (body: object) => t.admin.send('PATCH', at(id), { body, ...FOR_CLIENT })
  await kernel.db
    .updateTable('webhook')
    .set({ isActive: false, disabledReason: 'failed', consecutiveFailures: 9 })
    .execute()
  const changed = await change({
    route_key: 'gateway_delete',
    is_active: true,
    description: 'x',
    headers: { 'x-b': '2' },
  })
  const { route_key, is_active, disabled_reason, consecutive_failures, headers } = changed.body.data
  assert.deepEqual(
    [route_key, is_active, disabled_reason, consecutive_failures, headers],
    ['gateway_delete', true, null, 0, { 'x-b': '***' }],
  )
  await insert({ insert_body: { id: 50_000 } })
  assert.deepEqual(await texts(), [])
  assert.deepEqual((await change({ route_key: 'auth_user_created' })).body.data.details, {
    field: 'client_name',
  })

  assert.equal((await t.admin.send('DELETE', at(id), FOR_CLIENT)).status, 200)
  for (const method of ['GET', 'PATCH', 'DELETE'])
    assert.equal(
      (await t.admin.send(method, at(id), { ...(method === 'PATCH' && { body: {} }), ...FOR_CLIENT })).body
        .code,
      'webhook_not_found',
    )
  assert.equal((await t.admin.post(at(id, '/rotate-secret'), {}, FOR_CLIENT)).status, 404)
  const row = await kernel.db.selectFrom('webhook').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  assert.deepEqual([row.sealedSecret, row.sealedHeaders, row.isActive], [null, null, false])
  await key.post('/gateway/delete', { table_name: 'track', conditions: [{ column: 'id', value: 50_000 }] })
  assert.deepEqual(await texts(), [])
})

test('when the outbox cannot be written, the caller is told in a header, and it is counted and logged', async () => {
  await made({ route_key: 'gateway_insert' })
  const control = (text: string) => withClient(t.controlUrl, (client) => client.query(text))
  await control('alter table service.webhook_event rename to gone')
  try {
    const answer = await insert({ insert_body: { id: 60_000 } })
    assert.deepEqual([answer.status, answer.body.affected_rows], [200, 1], answer.text)
    assert.equal(answer.headers.get('x-service-events'), 'lost')
    const other = await key.post('/gateway/fetch', { table_name: 'other' })
    assert.equal(other.headers.get('x-service-events'), null)
    const metrics = await t.admin.get('/metrics')
    assert.match(metrics.text, /^gatehouse_events_lost_total 1$/m)
    assert.equal(t.log.filter((line) => line.includes('event_lost')).length, 1)
    // An event of users is part of its transaction.
    await made({ route_key: 'auth_user_created' })
    const refused = await t.anon.post('/api/auth/sign-up/email', {
      name: 'Bob',
      email: 'bob@example.com',
      password: 'a long password',
    })
    assert.equal(refused.status, 500)
  } finally {
    await control('alter table service.gone rename to webhook_event')
  }
  const none = await kernel.db
    .selectFrom('user')
    .select('id')
    .where('email', '=', 'bob@example.com')
    .execute()
  assert.deepEqual(none, [])
})
