import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Driver } from '#databases/drivers/driver.ts'
import { EVERY_RIGHT } from '#databases/plan/rights.ts'
import { readFetch } from '#databases/request/read-request.ts'
import { CONTRACT_TABLES, createSubject } from '#test/cassandra/contract-tables.ts'
import { driverOn } from '#test/cassandra/driver.ts'
import { cqlOn } from '#test/cassandra/raw-cql.ts'
import { type Keyspace, missing, testKeyspace } from '#test/cassandra/server.ts'
import { startSlowRows } from '#test/cassandra/slow-rows.ts'
import { createCalls, ORDINARY_LIMITS, textOf } from '#test/drivers/calls.ts'
import { driverContract } from '#test/drivers/contract.ts'
import { actor, testService } from '#test/harness.ts'

let keyspace: Keyspace
let driver: Driver

before(async () => {
  if (missing) return
  keyspace = await testKeyspace()
  await keyspace.run(
    'create table big (part int, id int, body text, primary key (part, id))',
    `create table events (day date, id int, note text, primary key (day, id)) with clustering order by (id desc)`,
    ...CONTRACT_TABLES,
  )
  driver = driverOn(keyspace.url)
})
after(async () => {
  await driver?.close()
  await keyspace?.stop()
})

const { fetch, insert } = createCalls(() => driver)

if (!missing) driverContract(createSubject({ driver: () => driver, keyspace: () => keyspace }))

test('every type is written as equivalent JSON', { skip: missing }, async () => {
  await keyspace.run(
    'create type place (x int, label text, at timestamp)',
    `create table kinds (id int primary key, b boolean, i1 tinyint, i2 smallint, i4 int, i8 bigint, vi varint, d decimal, f4 float,
      f8 double, t text, a ascii, u uuid, tu timeuuid, da date, tm time, ts timestamp, iv duration, bl blob, ip inet, ip6 inet,
      li list<int>, lt list<timestamp>, st set<text>, mt map<text, int>, mi map<int, frozen<list<uuid>>>, p frozen<place>,
      tu2 tuple<int, text, float>, fl frozen<list<frozen<map<text, decimal>>>>, v vector<float, 3>)`,
  )
  driver.invalidate()
  const row = {
    id: 1, b: true, i1: -128, i2: -32768, i4: 2147483647, i8: 42, vi: -7, d: '1.500', f4: 0.1, f8: 1e300,
    t: 'quote " back \\ tab \t \u0001 ü 😀', a: "it's", u: '0197f2c8-0000-7000-8000-000000000001',
    tu: '50554d6e-29bb-11e5-b345-feff819cdc9f', da: '2026-01-31', tm: '10:20:30.123456789', ts: '2026-01-31T10:20:30.5+02:00',
    iv: 'P1Y2M3DT4H5M6.5S', bl: '\\xDEADBEEF', ip: '10.0.0.1', ip6: '2001:db8::1', li: [3, 1, 2], lt: ['2026-01-31T00:00:00Z'],
    st: ['b', 'a', 'b'], mt: { 'k"': 1, __proto__2: 2 }, mi: { 7: ['0197f2c8-0000-7000-8000-000000000001'] },
    p: { label: 'a,"b', x: 1 }, tu2: [1, null, 1.5], fl: [{ a: '2.50' }], v: [0.5, 0.1, -1],
  } // biome-ignore format: a table
  const out = {
    ...row, d: 1.5, ts: '2026-01-31T08:20:30.5Z', bl: '\\xdeadbeef', st: ['a', 'b'], p: { x: 1, label: 'a,"b', at: null }, fl: [{ a: 2.5 }],
  } // biome-ignore format: a table
  assert.deepEqual((await insert('kinds', row)).rows, [out])
  const { text } = await fetch({ table: 'kinds', columns: 'd,ts,fl' })
  assert.equal(text, '[{"d":1.500,"ts":"2026-01-31T08:20:30.5Z","fl":[{"a":2.50}]}]')
})

const day = '2026-01-31'
const onDay = { column: 'day', value: day }
const unsupported = { code: 'unsupported_by_driver', status: 400 }

test('rows are in the order of their partition, and conditions that need a full scan are refused', {
  skip: missing,
}, async () => {
  await insert(
    'events',
    [1, 2, 3].map((id) => ({ day, id })),
  )
  const ids = async (more: object) =>
    (await fetch({ table: 'events', columns: 'id', conditions: [onDay], ...more })).rows.map(
      ({ id }: { id: number }) => id,
    )
  assert.deepEqual(await ids({}), [3, 2, 1])
  assert.deepEqual(await ids({ sort_by: { field: 'id', direction: 'desc' } }), [3, 2, 1])
  assert.deepEqual(await ids({ sort_by: 'id', limit: 2 }), [1, 2])
  assert.deepEqual(
    await ids({ conditions: [onDay, { operator: 'lt', column: 'id', value: 3 }], sort_by: 'id' }),
    [1, 2],
  )
  for (const body of [
    { sort_by: 'note', conditions: [onDay] },
    { sort_by: 'id' },
    { conditions: [{ column: 'note', value: 'n1' }] },
    { conditions: [{ column: 'id', value: 1 }] },
    { conditions: [{ operator: 'gt', column: 'day', value: day }] },
    { conditions: [onDay], offset: 1 },
    { columns: 'note::int', conditions: [onDay] },
  ]) {
    const refusal = { ...unsupported, message: /scylladb/ }
    await assert.rejects(fetch({ table: 'events', ...body }), refusal, JSON.stringify(body))
  }
})

test('names and values of every kind are unchanged', { skip: missing }, async () => {
  const hostile = `Odd "name"; drop table events --'`
  await keyspace.run(
    `create table "Select" (id int primary key, "${hostile.replaceAll('"', '""')}" text, "__proto__" text, "__columns" text)`,
  )
  driver.invalidate()
  for (const [id, text] of [`'; drop table events; --`, '$$', '\u0001\u2028"\\', '😀', ''].entries()) {
    const row = JSON.parse(JSON.stringify({ id, [hostile]: text, __columns: text }))
    Object.defineProperty(row, '__proto__', { value: text, enumerable: true })
    const answer = await insert('Select', row)
    const expected = { id, [hostile]: text, __columns: text, ['__proto__']: text }
    assert.deepEqual(Object.entries(answer.rows[0]).sort(), Object.entries(expected).sort())
  }
  assert.ok((await driver.catalogue()).find('public', 'events'))
  await assert.rejects(fetch({ table: 'events"; drop' }), { code: 'table_not_found', status: 404 })
})

async function addThousand(part: number): Promise<void> {
  const rows = Array.from({ length: 1_000 }, (_, index) => ({
    part,
    id: part * 1_000 + index,
    body: 'x'.repeat(200),
  }))
  await insert('big', rows, { head: true })
}

test('ten thousand rows are read by pages, each row once, and a reader may leave', {
  skip: missing,
}, async () => {
  const limits = { ...ORDINARY_LIMITS, rows: 20_000, maxRows: 20_000 }
  for (let part = 0; part < 10; part++) await addThousand(part)
  const select = async () =>
    driver.select(await driver.plan(readFetch({ table: 'big' }, { limits }), EVERY_RIGHT))
  let began = performance.now()
  const answer = await select()
  assert.ok(!Array.isArray(answer.json))
  assert.throws(() => answer.facts())
  const rows = JSON.parse(await textOf(answer))
  const read = performance.now() - began
  assert.equal(new Set(rows.map(({ id }: { id: number }) => id)).size, 10_000)
  assert.deepEqual(
    [rows.length, answer.facts()],
    [10_000, { rows: 10_000, hasMore: false, total: undefined }],
  )
  began = performance.now()
  assert.equal(await createCalls(() => driver).count({ table: 'big' }), 10_000)
  const counted = performance.now() - began
  // With pages of one row it would take ten times as long.
  assert.ok(counted < 2 * read, `counting took ${counted} ms, reading ${read} ms`)
  for (let round = 0; round < 5; round++)
    for await (const chunk of (await select()).json) if (chunk.length > 0) break
  const part = await driver.select(
    await driver.plan(readFetch({ table: 'big', limit: 7_500, count: 'exact' }, { limits }), EVERY_RIGHT),
  )
  assert.equal(JSON.parse(await textOf(part)).length, 7_500)
  assert.deepEqual(part.facts(), { rows: 7_500, hasMore: false, total: 10_000 })
  assert.deepEqual([driver.stats().waiting, driver.stats().circuit], [0, 'closed'])
})

test('a statement that takes longer than connect_timeout, on a node that answers others, is left alone', {
  skip: missing,
}, async (t) => {
  await addThousand(10)
  // On a busy machine a node may need a second to answer.
  const connectTimeout = 4_000
  const node = await startSlowRows(keyspace.url, 3 * connectTimeout)
  const other = driverOn(node.url, { connectTimeout })
  t.after(async () => {
    await other.close()
    await node.close()
  })
  await other.probe()
  node.slowDown()
  const began = performance.now()
  const { json } = await cqlOn(() => other)('select id from big where part = 10 limit 1')
  assert.equal(Buffer.concat(json).toString(), '[{"id":10000}]')
  assert.ok(performance.now() - began >= 3 * connectTimeout, `it took ${performance.now() - began} ms`)
})

test('external changes are seen: new tables and columns at once, dropped ones by the next plan', {
  skip: missing,
}, async () => {
  await driver.catalogue()
  await keyspace.run('create table late (a int primary key, b int)', 'insert into late (a, b) values (1, 2)')
  await sleep(1_050)
  assert.deepEqual((await fetch({ table: 'late' })).rows, [{ a: 1, b: 2 }])
  await keyspace.run('alter table late drop b', 'alter table late add c text')
  assert.deepEqual((await fetch({ table: 'late' })).rows, [{ a: 1, c: null }])
  await keyspace.run('drop table late')
  await assert.rejects(fetch({ table: 'late' }), { code: 'table_not_found', status: 404 })
})

test('unused connections are closed, and opened again for the next statement', {
  skip: missing,
}, async () => {
  const other = driverOn(keyspace.url, { idleTimeout: 100 })
  await other.probe()
  assert.ok(other.stats().total > 0)
  for (let round = 0; round < 50 && other.stats().total > 0; round++) await sleep(50)
  assert.deepEqual([other.stats().total, other.stats().circuit], [0, 'closed'])
  assert.match(await other.probe(), /^\d/)
  await other.close()
  await assert.rejects(other.probe(), { code: 'client_unavailable', status: 503 })
})

test('over HTTP a registered client works as every other, with the rights of its keys', {
  skip: missing,
}, async () => {
  const t = await testService()
  const made = await t.admin.post('/admin/clients', {
    client_name: 'wide',
    driver: 'scylladb',
    url: keyspace.url,
  })
  assert.deepEqual([made.status, made.body.reachable], [201, true], made.text)
  assert.doesNotMatch(made.text, /cassandra:cassandra/)
  const as = async (...rights: string[]) => {
    const { apiKey } = await t.key(rights, { client_name: 'wide' })
    return actor(t.url, { apikey: apiKey, 'x-service-client': 'wide' })
  }
  const writer = await as('events.read', 'events.write', 'events.delete')
  const table_name = 'events'
  const conditions = [{ eq_column: 'day', eq_value: '2026-02-01' }]
  const insert_body = [1, 2].map((id) => ({ day: '2026-02-01', id, note: `n${id}` }))
  const put = () => writer.send('PUT', '/gateway/insert', { body: { table_name, insert_body } })
  assert.deepEqual(
    (await put()).body.data.map(({ id }: { id: number }) => id),
    [1, 2],
  )
  assert.deepEqual([(await put()).status, (await put()).body.code], [409, 'unique_violation'])
  // There are no transactions, so each insert runs by itself.
  const inWindow = { body: { table_name, insert_body }, headers: { 'x-service-insert-window': '5' } }
  assert.equal((await writer.send('PUT', '/gateway/insert', inWindow)).status, 409)
  const read = await writer.post('/gateway/fetch', {
    table_name,
    conditions,
    count: 'exact',
    group_by: 'note',
  })
  assert.deepEqual([read.body.count, read.body.data.length], [2, 2], read.text)
  const data = await writer.get('/data?view=events&eq_column=day&eq_value=2026-02-01&columns=id&limit=1')
  assert.deepEqual(data.body.data, [{ id: 2 }])
  assert.equal((await writer.post('/query/count', { table_name, conditions })).body.count, 2)
  const ids = Array.from({ length: 1_001 }, (_, id) => id)
  const many = { table_name, conditions: [...conditions, { operator: 'in', column: 'id', value: ids }] }
  const wide = await writer.post('/gateway/fetch', many)
  assert.deepEqual([wide.status, wide.body.code], [400, 'too_complex'], wide.text)
  assert.match(wide.body.error, /limits\.in_product/)
  const set = { note: 'new' }
  const one = [...conditions, { eq_column: 'id', eq_value: 1 }]
  assert.equal(
    (await writer.post('/gateway/update', { table_name, set, conditions: one })).body.affected_rows,
    1,
  )
  const removed = await writer.send('DELETE', '/gateway/delete', { body: { table_name, conditions: one } })
  assert.equal(removed.body.data[0].note, 'new')
  for (const refused of [
    await writer.post('/gateway/fetch', {
      table_name,
      conditions: [{ operator: 'or', value: 'id.eq.1,id.eq.2' }],
    }),
    await writer.post('/gateway/transaction', {
      operations: [{ id: 'a', kind: 'fetch', payload: { table_name, conditions } }],
    }),
    await (await as('gateway.rpc.execute')).post('/rpc/now', {}),
    await (await as('management.tables.write')).post('/management/tables', { table_name: 'x' }),
  ])
    assert.deepEqual([refused.status, refused.body.code], [400, 'unsupported_by_driver'], refused.text)
  for (const refused of [
    await writer.post('/gateway/fetch', { table_name: 'big' }),
    await writer.post('/gateway/fetch', { table_name, schema_name: 'system_auth' }),
    await writer.post('/query/sql', { driver: 'scylladb', query: 'select * from events' }),
  ])
    assert.deepEqual([refused.status, refused.body.code], [403, 'insufficient_rights'], refused.text)
  const all = await as('*')
  const system = await all.post('/gateway/fetch', { table_name: 'roles', schema_name: 'system_auth' })
  assert.deepEqual([system.status, system.body.code], [404, 'table_not_found'])
  const sql = await all.post('/query/sql', {
    driver: 'scylla',
    query: 'select note from events where day = ?',
    params: ['2026-02-01'],
  })
  assert.deepEqual([sql.body.data, sql.body.meta.backend], [[{ note: 'n2' }], 'scylladb'], sql.text)
  const mismatch = await all.post('/query/sql', { driver: 'postgresql', query: 'select 1' })
  assert.deepEqual([mismatch.status, mismatch.body.code], [400, 'driver_mismatch'])
  const tables = await (await as('management.read')).get('/schema/tables')
  assert.ok(
    tables.body.tables.some((item: { table_name: string }) => item.table_name === 'events'),
    tables.text,
  )
  assert.ok(!/system_auth/.test(tables.text))
  await t.admin.send('PUT', '/admin/clients/wide/freeze', { body: { is_frozen: true } })
  assert.deepEqual([(await put()).status, (await put()).body.code], [403, 'client_frozen'])
  assert.equal((await writer.post('/gateway/fetch', { table_name, conditions })).body.data.length, 1)
  const health = await t.admin.get('/health')
  assert.match(health.text, /"client:wide","status":"online","message":"scylladb \d/)
  await t.stop()
})
