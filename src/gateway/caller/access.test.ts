import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import pg from 'pg'
import { ADMIN_KEY, type Answer, actor, testService } from '#test/harness.ts'

const t = await testService({ config: { metrics: { token: 'scrape-me-0123456789' } } })
const key = await t.key(['gateway.*'])
const other = await t.key(['gateway.*'])
const client = { 'x-service-client': 'default' }
const FETCH = { table_name: 'users', limit: 1 }

before(async () => {
  const database = new pg.Client({ connectionString: t.clientUrl })
  await database.connect()
  await database.query(
    `create table users (id int primary key); create schema sales; create table sales.orders (id int primary key)`,
  )
  await database.end()
})

const refusal = ({ status, body }: Answer) => [status, body.code ?? 'ok']
const fetchWith = (headers: Record<string, string>, query = '') =>
  actor(t.url, headers).post(`/gateway/fetch${query}`, FETCH)

test('checks run in this order: key, client, binding and right, body', async () => {
  const broken = { raw: '{"table_name":' }
  const ask = (headers: Record<string, string>) =>
    actor(t.url, headers).send('POST', '/gateway/fetch', broken)
  const nothing = await t.key([])
  const elsewhere = await t.key(['*'], { client_name: 'elsewhere' })
  const bad = { apikey: 'svc_nonsense' }

  // In the first request everything is wrong; each following one fixes the cause of the previous error.
  assert.deepEqual(refusal(await ask({ ...bad, 'x-service-client': 'nowhere' })), [401, 'invalid_api_key'])
  assert.deepEqual(refusal(await ask({ 'x-service-client': 'nowhere' })), [401, 'api_key_required'])
  assert.deepEqual(refusal(await ask({ apikey: elsewhere.apiKey })), [400, 'missing_client_header'])
  assert.deepEqual(refusal(await ask({ apikey: elsewhere.apiKey, 'x-service-client': 'nowhere' })), [
    400,
    'unknown_client',
  ])
  assert.deepEqual(refusal(await ask({ apikey: elsewhere.apiKey, ...client })), [
    403,
    'api_key_client_mismatch',
  ])
  assert.deepEqual(refusal(await ask({ apikey: key.apiKey, ...client })), [400, 'invalid_json'])
  assert.deepEqual(refusal(await fetchWith({ apikey: nothing.apiKey, ...client })), [
    403,
    'insufficient_rights',
  ])
  const missing = await actor(t.url, { apikey: nothing.apiKey, ...client }).post('/gateway/fetch', {
    table_name: 'no_such_table',
  })
  assert.deepEqual(
    refusal(missing),
    [403, 'insufficient_rights'],
    'a key without the right to a table cannot find out whether the table exists',
  )

  const advice = await Promise.all(
    [{}, bad, { apikey: key.apiKey }, { apikey: elsewhere.apiKey, ...client }].map(ask),
  )
  assert.deepEqual(
    advice.map(({ body }) => body.error),
    [
      'Send the key in the header apikey, or as Authorization: Bearer',
      'The key is unknown, revoked or incomplete: it begins with svc_ and has one dot',
      'Name a client in it, like default',
      'The key is bound to another client',
    ],
  )

  const management = (headers: Record<string, string>) =>
    actor(t.url, headers).send('POST', '/management/tables', broken)
  assert.deepEqual(refusal(await management({ ...client })), [401, 'api_key_required'])
  assert.deepEqual(refusal(await management({ apikey: nothing.apiKey })), [400, 'missing_client_header'])
  assert.deepEqual(refusal(await management({ apikey: elsewhere.apiKey, ...client })), [
    403,
    'api_key_client_mismatch',
  ])
  assert.deepEqual(refusal(await management({ apikey: nothing.apiKey, ...client })), [
    403,
    'insufficient_rights',
  ])
  const admin = (headers: Record<string, string>) =>
    actor(t.url, headers).send('POST', '/admin/api-keys', broken)
  assert.deepEqual(refusal(await admin({})), [401, 'api_key_required'])
  assert.deepEqual(refusal(await admin({ apikey: key.apiKey })), [403, 'insufficient_rights'])
  assert.deepEqual(refusal(await admin({ apikey: ADMIN_KEY })), [400, 'invalid_json'])
})

test('the error names the missing rights in its message and its details', async () => {
  const header = await fetchWith({ apikey: key.apiKey })
  assert.deepEqual(header.body.data, {
    operation: 'gateway_fetch',
    details: { missing_header: 'X-Service-Client' },
  })
  const right = await (await t.key(['orders.read'])).post('/gateway/fetch', FETCH)
  assert.equal(right.body.message, 'Insufficient API key rights')
  assert.match(right.body.error, /users\.read/)
  assert.deepEqual(right.body.data.details, { required_right: 'users.read', required_rights: ['users.read'] })
})

const OPERATIONS: Readonly<
  Record<string, readonly [path: string, body: Record<string, unknown>, action: string]>
> = {
  fetch: ['/gateway/fetch', {}, 'read'],
  count: ['/query/count', {}, 'read'],
  insert: ['/gateway/insert', { insert_body: { id: 1 }, on_conflict: 'id' }, 'write'],
  update: [
    '/gateway/update',
    { update_body: { id: 0 }, conditions: [{ eq_column: 'id', eq_value: -1 }] },
    'write',
  ],
  delete: ['/gateway/delete', { conditions: [{ eq_column: 'id', eq_value: -1 }] }, 'delete'],
}

test('each operation requires its own right on its table', async () => {
  const tables = [
    ['users', 'public', 'users'],
    ['sales.orders', 'sales', 'orders'],
  ] as const
  for (const [name, schema, table] of tables) {
    for (const granted of ['read', 'write', 'delete']) {
      const holder = await t.key([`${name}.${granted}`])
      for (const [operation, [path, body, action]] of Object.entries(OPERATIONS)) {
        const { status, body: answer } = await holder.post(path, {
          schema_name: schema,
          table_name: table,
          ...body,
        })
        if (granted === action)
          assert.notEqual(status, 403, `${operation} with ${name}.${granted}: ${JSON.stringify(answer)}`)
        else
          assert.deepEqual(
            [status, answer.code],
            [403, 'insufficient_rights'],
            `${operation} with ${name}.${granted}`,
          )
      }
    }
  }
})

test('management requires a bound key with the right, and rejects the admin key', async () => {
  const ask = (headers: Record<string, string>) =>
    actor(t.url, { ...client, ...headers }).get('/management/capabilities')
  const unbound = await t.key(['*'], { client_name: null })
  const bound = await t.key(['management.read'])
  assert.deepEqual(refusal(await ask({ apikey: ADMIN_KEY })), [401, 'api_key_required'])
  assert.deepEqual(refusal(await ask({ 'x-service-admin-key': ADMIN_KEY })), [401, 'api_key_required'])
  assert.deepEqual(refusal(await ask({ apikey: unbound.apiKey })), [403, 'insufficient_rights'])
  assert.deepEqual(refusal(await ask({ apikey: key.apiKey })), [403, 'insufficient_rights'])
  assert.deepEqual(refusal(await ask({ apikey: bound.apiKey })), [200, 'ok'])
  assert.deepEqual(refusal(await ask({ apikey: bound.apiKey, 'x-service-admin-key': 'whatever' })), [
    200,
    'ok',
  ])
  const write = await bound.post('/management/tables', { table_name: 'made' })
  assert.deepEqual(refusal(write), [403, 'insufficient_rights'])
  assert.deepEqual(write.body.data.details.required_right, 'management.tables.write')
})

test('an unbound key is valid for all clients except the logging client, which accepts only bound keys, for reading', async () => {
  const unbound = await t.key(['*'], { client_name: null })
  const bound = await t.key(['*'], { client_name: 'logging' })
  const logging = { 'x-service-client': 'logging' }
  const read = (apikey: string, headers: Record<string, string> = logging) =>
    actor(t.url, { apikey, ...headers }).post('/gateway/fetch', { table_name: 'database_audit_log' })
  assert.equal((await read(unbound.apiKey, client)).body.code, 'table_not_found')
  assert.deepEqual(refusal(await read(unbound.apiKey)), [403, 'api_key_client_mismatch'])
  assert.deepEqual(refusal(await read(key.apiKey)), [403, 'api_key_client_mismatch'])
  assert.deepEqual(refusal(await read(bound.apiKey)), [200, 'ok'])
  assert.deepEqual(refusal(await read(ADMIN_KEY)), [200, 'ok'])
  for (const apikey of [bound.apiKey, ADMIN_KEY]) {
    const write = await actor(t.url, { apikey, ...logging }).post('/gateway/delete', {
      table_name: 'database_audit_log',
      conditions: [{ eq_column: 'id', eq_value: 1 }],
    })
    assert.equal(write.body.code, 'read_only')
  }
  const free = await testService({ config: { gateway: { enforce_api_keys: false } } })
  assert.equal(
    (await actor(free.url, logging).post('/gateway/fetch', { table_name: 'database_audit_log' })).status,
    401,
  )
})

test("admin routes accept the admin key in each of its headers, and never a client's key", async () => {
  const ask = (headers: Record<string, string>, query = '') => actor(t.url, headers).get(`/clients${query}`)
  const places: readonly (readonly [Record<string, string>, string?])[] = [
    [{ apikey: ADMIN_KEY }], [{ 'x-api-key': ADMIN_KEY }], [{ 'x-service-key': ADMIN_KEY }], [{ authorization: `Bearer ${ADMIN_KEY}` }],
    [{ 'x-service-admin-key': ADMIN_KEY }], [{}, `?api_key=${ADMIN_KEY}`], [{ 'x-service-admin-key': ADMIN_KEY, apikey: key.apiKey }],
    [{ 'x-service-admin-key': ADMIN_KEY, apikey: key.apiKey, 'x-api-key': other.apiKey }], [{ 'x-service-admin-key': 'wrong', apikey: ADMIN_KEY }],
  ] // biome-ignore format: a table
  for (const [headers, query] of places)
    assert.equal((await ask(headers, query)).status, 200, JSON.stringify([headers, query]))
  const everything = await t.key(['*', 'management.*'])
  assert.deepEqual(refusal(await ask({ apikey: everything.apiKey })), [403, 'insufficient_rights'])
  assert.deepEqual(refusal(await ask({ 'x-service-admin-key': everything.apiKey })), [401, 'invalid_api_key'])
  assert.deepEqual(refusal(await ask({ 'x-service-admin-key': '' })), [401, 'invalid_api_key'])
  assert.deepEqual(refusal(await ask({})), [401, 'api_key_required'])
  const ada = await t.signUp('Ada')
  assert.equal((await ada.get('/clients')).status, 401, 'nor a session')
})

test('metrics require the admin key or the metrics token', async () => {
  const ask = (headers: Record<string, string>) => actor(t.url, headers).get('/metrics')
  assert.equal((await ask({ authorization: 'Bearer scrape-me-0123456789' })).status, 200)
  assert.equal((await ask({ apikey: ADMIN_KEY })).status, 200)
  for (const headers of [{}, { authorization: 'Bearer scrape-me' }, { apikey: 'scrape-me-0123456789' }]) {
    assert.equal((await ask(headers)).status, 401)
  }
  assert.equal(
    (await actor(t.url, { authorization: 'Bearer scrape-me-0123456789' }).get('/clients')).status,
    401,
  )
  const off = await testService({ config: { metrics: { enabled: false } } })
  assert.equal((await off.admin.get('/metrics')).status, 404)
})

test('without enforcement data operations need no key, but an invalid key is rejected', async () => {
  const free = await testService({ config: { gateway: { enforce_api_keys: false } } })
  const ask = (headers: Record<string, string>, path = '/gateway/fetch') =>
    actor(free.url, { ...client, ...headers }).post(path, { table_name: 'nothing' })
  assert.equal((await ask({})).body.code, 'table_not_found')
  assert.deepEqual(refusal(await ask({ apikey: 'nonsense' })), [401, 'invalid_api_key'])
  assert.deepEqual(refusal(await ask({ apikey: (await free.key([])).apiKey })), [403, 'insufficient_rights'])
  assert.deepEqual(refusal(await ask({}, '/management/tables')), [401, 'api_key_required'])
  assert.equal((await actor(free.url).get('/clients')).status, 401)
  assert.deepEqual(refusal(await actor(free.url).post('/gateway/fetch', {})), [400, 'missing_client_header'])
})
