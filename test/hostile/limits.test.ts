import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { OWN_LOCKS, testDatabase, withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { type Ask, testService } from '#test/harness.ts'

const KIB = 1_024
const database = await testDatabase()
after(() => database.drop())
await withClient(database.url, (client) =>
  client.query(`
    create table note (id int primary key, text text);
    insert into note select n, repeat('x', 100) from generate_series(1, 20) as n;
    create table tag (id int primary key, note_id int references note);
    create view slow as select 1 as id, pg_advisory_xact_lock(1)::text as locked`),
)
/** Limits so low that small requests exceed them. */
const limits = {
  body: 2 * KIB,
  body_bulk: 4 * KIB,
  rows: 5,
  list: 2,
  list_max: 3,
  conditions: 2,
  columns: 2,
  nesting: 1,
  relations: 1,
  operations: 2,
  answer: KIB,
  insert_window: 50,
  header: 4 * KIB,
}
const client = { url: database.url, max_connections: 1, sql_connections: 1, max_waiting: 1 }
const ORIGIN = 'https://app.example'
const t = await testService({
  config: {
    limits,
    gateway: { max_rows: 10 },
    clients: { small: client },
    auth: { trusted_origins: [ORIGIN] },
  },
})
const key = await t.key(['*'], { client_name: 'small' })
const small = { 'x-service-client': 'small' }

const send = (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
  key.send(method, path, { ...(body && { body }), headers: { ...small, ...headers } })
const read = (body: object, { headers = {} }: Ask = {}) =>
  send('POST', '/gateway/fetch', { table_name: 'note', ...body }, headers)
const condition = { column: 'id', value: 1 }
const insert = (id: number) => ({
  id: `${id}`,
  kind: 'insert',
  payload: { table_name: 'note', insert_body: { id } },
})
const transaction = (operations: object[]) => send('POST', '/gateway/transaction', { operations })
const notes = { id: 'all', kind: 'fetch', payload: { table_name: 'note', limit: 10 } }

test('requests above a configured limit fail with the limit in the details', async () => {
  const long = 'x'.repeat(5 * KIB)
  const one = { table_name: 'note', insert_body: { id: 51 } }
  const bulk = { table_name: 'note', insert_body: { id: 50, text: long } }
  const cases: readonly [
    ask: () => ReturnType<typeof read>,
    status: number,
    code: string,
    maximum?: number,
  ][] = [
    [() => read({ conditions: [{ column: 'text', value: long }] }), 413, 'payload_too_large', 2 * KIB],
    [() => send('PUT', '/gateway/insert', bulk), 413, 'payload_too_large', 4 * KIB],
    [() => read({ limit: 11 }), 400, 'limit_too_large', 10],
    [() => read({ conditions: [condition, condition, condition] }), 400, 'too_many_conditions', 2],
    [() => read({ columns: ['id', 'text', 'a:id'] }), 400, 'too_many_columns', 2],
    [() => read({ select: { id: true, text: true, a: 'id' } }), 400, 'too_many_columns', 2],
    [() => read({ sort_by: [1, 2, 3].map(() => ({ field: 'id' })) }), 400, 'too_many_columns', 2],
    [
      () => send('PUT', '/gateway/insert', { ...one, on_conflict: ['id', 'id', 'id'] }),
      400,
      'too_many_columns',
      2,
    ],
    [
      () => read({ conditions: [{ operator: 'or', value: 'and(id.eq.1,or(id.eq.2,id.eq.3))' }] }),
      400,
      'too_deep',
    ],
    [() => read({ columns: ['tag(note(id))'] }), 400, 'too_deep'],
    [() => transaction([insert(51), insert(52), insert(53)]), 400, 'too_many_operations', 2],
    [() => transaction([insert(51), notes]), 413, 'result_too_large', KIB],
    [() => read({ group_by: 'id', limit: 10 }), 413, 'result_too_large', KIB],
    [
      () => send('PUT', '/gateway/insert', one, { 'x-service-insert-window': '51' }),
      400,
      'invalid_insert_window',
      50,
    ],
    [() => send('POST', '/gateway/query', { query: 'table note' }), 413, 'result_too_large', 10],
  ]
  for (const [ask, status, code, maximum] of cases) {
    const { body, text, ...answer } = await ask()
    assert.deepEqual([answer.status, body?.code], [status, code], text)
    const { maximum: rows, maximum_bytes: bytes = rows } = body.data?.details ?? {}
    assert.equal(bytes, maximum, text)
  }
  const { rows } = await withClient(database.url, (session) =>
    session.query('select count(*)::int from note'),
  )
  assert.deepEqual(rows, [{ count: 20 }], 'a rejected write was executed')
})

test('requests within the limits pass', async () => {
  const some = await read({
    conditions: [condition, condition],
    columns: ['id', 'text'],
    sort_by: ['id', 'text'],
  })
  assert.deepEqual([some.status, some.body.data.length], [200, 1], some.text)
  const page = await read({})
  assert.deepEqual([page.body.data.length, page.body.has_more], [5, true])
  assert.equal((await read({ limit: 10 })).body.data.length, 10)
  assert.equal((await transaction([insert(60), insert(61)])).status, 200)
  const grouped = await read({ group_by: 'id', limit: 2 })
  assert.equal(grouped.status, 200, grouped.text)
  const windowed = { table_name: 'note', insert_body: { id: 62 } }
  assert.equal(
    (await send('PUT', '/gateway/insert', windowed, { 'x-service-insert-window': '50' })).status,
    200,
  )
})

test('headers above their limit get 431 in the envelope of their surface, readable by pages of trusted origins', async () => {
  const surfaces = [
    ['/api/auth/get-session', 'HEADERS_TOO_LARGE', ['code', 'message']],
    ['/api/auth/nothing', 'HEADERS_TOO_LARGE', ['code', 'message']],
    ['/data?view=note', 'headers_too_large', ['code', 'error', 'message', 'request_id', 'status']],
    ['/nothing', 'headers_too_large', ['code', 'error', 'message', 'request_id', 'status']],
  ] as const
  // Up to twice the limit, requests reach their route.
  for (const length of [5 * KIB, 20 * KIB])
    for (const [path, code, members] of surfaces) {
      const refused = (origin: string) =>
        t.anon.get(path, { headers: { origin, 'x-long': 'x'.repeat(length) } })
      const { status, body, headers } = await refused(ORIGIN)
      assert.deepEqual([status, body.code, Object.keys(body).sort()], [431, code, members], path)
      assert.equal(headers.get('access-control-allow-origin'), ORIGIN, `${path} ${length}`)
      assert.equal(headers.get('access-control-allow-credentials'), 'true')
      const foreign = await refused('https://evil.example')
      assert.deepEqual([foreign.status, foreign.headers.get('access-control-allow-origin')], [431, null])
    }
})

test('a URL above the limit of the headers gets 431, as do many small headers', async () => {
  const long = await t.anon.get(`/api/auth/get-session?x=${'x'.repeat(5 * KIB)}`)
  assert.deepEqual([long.status, long.body.code], [431, 'HEADERS_TOO_LARGE'])
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`x-${index}`, 'value']))
  const { status, body } = await read({}, { headers: many })
  assert.deepEqual([status, body.code], [431, 'headers_too_large'])
})

test('lists have the configured default length, and at most the configured maximum', async () => {
  for (let index = 0; index < 4; index++) await t.key(['*.read'])
  const list = (query = '') => t.admin.get(`/admin/api-keys${query}`)
  assert.equal((await list()).body.data.api_keys.length, 2)
  assert.equal((await list('?limit=3')).body.data.api_keys.length, 3)
  const { status, body } = await list('?limit=4')
  assert.deepEqual([status, body.code, body.data.details.field], [400, 'validation_error', 'limit'])
  assert.match(body.message, /3/)
})

test('the configured number of callers may wait for a connection; the next is rejected at once', async () => {
  await read({})
  const slow = { table_name: 'slow' }
  for (const ask of [() => read(slow), () => send('POST', '/gateway/query', { query: 'table slow' })])
    await withClient(database.url, async (holder) => {
      await holder.query('select pg_advisory_lock(1)')
      const running = ask()
      const blocked = `select from ${OWN_LOCKS} where locktype = 'advisory' and not granted`
      await eventually(async () => (await holder.query(blocked)).rowCount === 1)
      // One of them waits.
      const two = [ask(), ask()]
      const refused = await Promise.race(two)
      assert.deepEqual([refused.status, refused.body.code], [503, 'client_busy'], refused.text)
      await holder.query('select pg_advisory_unlock(1)')
      const statuses = (await Promise.all([running, ...two])).map(({ status }) => status)
      assert.deepEqual(statuses.toSorted(), [200, 200, 503])
    })
})
