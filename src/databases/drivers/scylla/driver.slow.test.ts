import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Driver, SqlRequest } from '#databases/drivers/driver.ts'
import { driverOn } from '#test/cassandra/driver.ts'
import { testKeys } from '#test/cassandra/keys.ts'
import { cqlOn, testRawCql } from '#test/cassandra/raw-cql.ts'
import { type Keyspace, missing, testKeyspace } from '#test/cassandra/server.ts'
import { testSilentNodes } from '#test/cassandra/silent-nodes.ts'
import { createCalls } from '#test/drivers/calls.ts'
import { startProxy } from '#test/hostile/proxy.ts'

const skip = missing

let keyspace: Keyspace
let driver: Driver

before(async () => {
  if (skip) return
  keyspace = await testKeyspace()
  await keyspace.run(
    'create table events (day date, id int, note text, tags set<text>, primary key (day, id)) with clustering order by (id desc)',
    'create table people (name text primary key, age int)',
    'create table visits (page text primary key, seen counter)',
  )
  driver = driverOn(keyspace.url)
})
after(async () => {
  await driver?.close()
  await keyspace?.stop()
})

const { fetch, insert, update, remove, count } = createCalls(() => driver)
const unsupported = { code: 'unsupported_by_driver', status: 400 }
const day = '2026-01-31'
const onDay = { column: 'day', value: day }

const cql = (text: string, more: Partial<SqlRequest> = {}, on = driver) => cqlOn(() => on)(text, more)
const rowsOf = async (text: string, more: Partial<SqlRequest> = {}) =>
  JSON.parse(Buffer.concat((await cql(text, more)).json).toString())

const place = { driver: () => driver, keyspace: () => keyspace, skip }
testKeys(place)
testRawCql(place)
testSilentNodes(place)

test('of fifty inserts of one key one wins, and its row is stored', { skip }, async () => {
  const ages = Array.from({ length: 50 }, (_, age) => age)
  const ends = await Promise.allSettled(ages.map((age) => insert('people', { name: 'race', age })))
  const won = ends.flatMap((end, age) => (end.status === 'fulfilled' ? [age] : []))
  assert.equal(won.length, 1)
  assert.deepEqual((await fetch({ table: 'people', conditions: [{ column: 'name', value: 'race' }] })).rows, [
    { name: 'race', age: won[0] },
  ])
  // A busy server may not know the outcome of one of them; it does not report it as written.
  const codes = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason.code] : []))
  assert.deepEqual(
    [...new Set(codes)].filter((code) => code !== 'statement_timeout'),
    ['unique_violation'],
  )
})

test('a duplicate is reported and writes nothing, at any position in the call', { skip }, async () => {
  const rows = [1, 2, 3].map((id) => ({ day, id, note: `n${id}` }))
  assert.equal((await insert('events', rows)).affected, 3)
  const duplicate = { code: 'unique_violation', status: 409 }
  await assert.rejects(
    insert('events', [
      { day, id: 4 },
      { day, id: 2, note: 'no' },
    ]),
    {
      ...duplicate,
      details: {
        schema_name: 'public',
        table_name: 'events',
        constraint: 'primary key',
        columns: ['day', 'id'],
      },
    },
  )
  await assert.rejects(
    insert('events', [
      { day, id: 5 },
      { day, id: '5' },
    ]),
    duplicate,
  )
  assert.equal(await count({ table: 'events', conditions: [onDay] }), 3)
  for (const row of [{ id: 1 }, { day, id: null }, { day: null, id: 1 }])
    await assert.rejects(insert('events', row), { code: 'not_null_violation', status: 400 })
  await assert.rejects(insert('events', { day, id: 'one' }), {
    code: 'invalid_value',
    details: { column: 'id' },
  })
})

test('a write to several partitions is refused, except an upsert with equal values', {
  skip,
}, async () => {
  const two = [
    { name: 'Ada', age: 1 },
    { name: 'Bob', age: 1 },
  ]
  await assert.rejects(insert('people', two), unsupported)
  await assert.rejects(insert('people', two, { on_conflict: 'name' }), unsupported)
  await assert.rejects(insert('people', two, { on_conflict: 'name', update_body: { age: 2 } }), unsupported)
  assert.equal(
    await count({ table: 'people', conditions: [{ operator: 'in', column: 'name', value: ['Ada', 'Bob'] }] }),
    0,
  )
  const done = await insert('people', two, { on_conflict: 'name', update_body: { age: 1 } })
  assert.deepEqual([done.affected, done.rows], [2, two])
  const both = [{ operator: 'in', column: 'name', value: ['Ada', 'Bob'] }]
  await assert.rejects(update({ table: 'people', set: { age: 3 }, conditions: both }), unsupported)
  await assert.rejects(remove({ table: 'people', conditions: both }), unsupported)
  assert.deepEqual((await fetch({ table: 'people', columns: 'age', conditions: both })).rows, [
    { age: 1 },
    { age: 1 },
  ])
})

test('an update of a missing row creates nothing, and a delete returns deleted rows', {
  skip,
}, async () => {
  await keyspace.run('truncate people')
  await insert('people', { name: 'Ada', age: 1 })
  const named = (name: string) => ({ table: 'people', conditions: [{ column: 'name', value: name }] })
  const none = await update({ ...named('Nobody'), set: { age: 9 }, count: 'exact' })
  assert.deepEqual([none.affected, none.rows, none.total], [0, [], 0])
  const one = await update({
    ...named('Ada'),
    set: { age: null },
    columns: 'was:age,name',
    strip_nulls: true,
  })
  assert.deepEqual([one.affected, one.rows], [1, [{ name: 'Ada' }]])
  assert.equal(await count({ table: 'people' }), 1)
  assert.deepEqual((await remove({ table: 'people', resource_id: 'Ada' })).rows, [{ name: 'Ada', age: null }])
  const gone = await remove(named('Ada'))
  assert.deepEqual([gone.affected, gone.rows], [0, []])
  const changes = Array.from({ length: 10 }, (_, age) =>
    insert('people', { name: 'Eve' }, { on_conflict: 'name', update_body: { age } }),
  )
  for (const { affected } of await Promise.all(changes)) assert.equal(affected, 1)
  assert.equal(await count({ table: 'people' }), 1)
})

test('writes without whole keys, or to a key or a counter, are refused', {
  skip,
}, async () => {
  const refused = [
    update({ table: 'events', set: { note: 'x' }, allow_unbounded: true }),
    update({ table: 'events', set: { note: 'x' }, conditions: [onDay] }),
    update({
      table: 'events',
      set: { note: 'x' },
      conditions: [onDay, { operator: 'gt', column: 'id', value: 0 }],
    }),
    update({ table: 'events', set: { id: 7 }, conditions: [onDay, { column: 'id', value: 1 }] }),
    remove({ table: 'events', allow_unbounded: true }),
    remove({ table: 'events', conditions: [onDay, { column: 'note', value: 'n1' }] }),
    insert('visits', { page: '/', seen: 1 }),
  ]
  for (const call of refused) await assert.rejects(call, unsupported)
  const many = Array.from({ length: 51 }, (_, id) => id)
  const conditions = [onDay, { operator: 'in', column: 'id', value: many }]
  await assert.rejects(remove({ table: 'events', conditions }), { code: 'too_complex', status: 400 })
  assert.equal(await count({ table: 'events', conditions: [onDay] }), 3)
})

test("CQL of the caller's own runs one statement, its values bound by their types", { skip }, async () => {
  await cql(`insert into people (name, age) values (?, ?)`, { values: [`x'; --`, '41'] })
  assert.deepEqual(await rowsOf('select age from people where name = ?', { values: [`x'; --`] }), [
    { age: 41 },
  ])
  assert.deepEqual(
    await rowsOf('select count(*) as n from people where name in ?', { values: [['a', 'b']] }),
    [{ n: 0 }],
  )
  await cql('update visits set seen = seen + 5 where page = ?', { values: ['/'] })
  assert.deepEqual(await rowsOf('select seen from visits'), [{ seen: 5 }])
  for (const [text, values, code] of [
    ['select * from people where age = 1', undefined, 'invalid_sql'],
    ['selec 1', undefined, 'not_supported'],
    ['select * from', undefined, 'invalid_sql'],
    ['select * from nowhere', undefined, 'invalid_sql'],
    ['select * from people; select * from people', undefined, 'invalid_sql'],
    ['select * from people where name = ?', [], 'invalid_sql'],
    ['select * from people where name = ?', ['a', 'b'], 'invalid_sql'],
    ['insert into people (name, age) values (?, ?)', ['a', 'many'], 'invalid_value'],
    ['select * from system_auth.roles', undefined, 'permission_denied'],
    [`use ${keyspace.name}`, undefined, 'not_supported'],
  ] as const)
    await assert.rejects(cql(text, { values }), (error: Error & { code?: string; hint?: string }) => {
      assert.equal(error.code, code, `${text}: ${error.message}`)
      assert.doesNotMatch(`${error.message} ${error.hint}`, /127\.0\.0\.1|cassandra:/)
      return true
    })
  await assert.rejects(cql('select name from people', { maxRows: 0 }), {
    code: 'result_too_large',
    status: 413,
  })
  await assert.rejects(cql('truncate people', { readOnly: true }), { code: 'read_only', status: 403 })
  await cql('create table made (id int primary key)')
  assert.deepEqual((await insert('made', { id: 1 })).rows, [{ id: 1 }])
  for (const schema of [undefined, 'public', keyspace.name])
    assert.deepEqual(await rowsOf('select id from made', { schema }), [{ id: 1 }])
  await cql('drop table made')
  await assert.rejects(cql('select id from made'), { code: 'invalid_sql', status: 400 })
  await assert.rejects(insert('made', { id: 2 }), { code: 'table_not_found', status: 404 })
  await assert.rejects(cql('select * from made', { schema: 'system_auth' }), { code: 'permission_denied' })
  await assert.rejects(cql('select * from made', { schema: 'x"; drop' }), { code: 'invalid_identifier' })
})

test('a client that only reads refuses every write', { skip }, async () => {
  const reading = driverOn(keyspace.url, { readOnly: true })
  const { insert: add, update: change, remove: drop, fetch: read } = createCalls(() => reading)
  const conditions = [{ column: 'name', value: 'Eve' }]
  for (const call of [
    () => add('people', { name: 'new' }),
    () => change({ table: 'people', set: { age: 1 }, conditions }),
    () => drop({ table: 'people', conditions }),
    () => cql('truncate people', {}, reading),
  ])
    await assert.rejects(call(), { code: 'read_only', status: 403 })
  assert.equal((await read({ table: 'people', conditions })).rows.length, 1)
  await reading.close()
})

test('without its server a client fails at once with Retry-After, and recovers by itself', {
  skip,
}, async () => {
  const proxy = await startProxy(keyspace.url)
  const other = driverOn(proxy.url, { connectTimeout: 1_000 })
  const down = { code: 'client_unavailable', status: 503, headers: { 'retry-after': /^\d+$/ } }
  assert.match(await other.probe(), /^\d+\.\d+/)
  await proxy.cut()
  await assert.rejects(
    other.probe(),
    (error: { code?: string }) => error.code === down.code || error.code === 'connection_lost',
  )
  await assert.rejects(other.probe(), { code: down.code, status: down.status })
  assert.equal(other.stats().circuit, 'open')
  await proxy.mend()
  for (let round = 0; round < 300 && other.stats().circuit !== 'closed'; round++) {
    await sleep(100)
    await other.probe().catch(() => {})
  }
  assert.match(await other.probe(), /^\d+\.\d+/)
  assert.equal(other.stats().circuit, 'closed')
  await other.close()

  // The server is silent: a write may have been done, and the failure says so.
  const slow = driverOn(proxy.url, { statementTimeout: 2_000 })
  const { insert: add, fetch: read } = createCalls(() => slow)
  await read({ table: 'people' })
  await add('people', { name: 'early' })
  proxy.freeze()
  const late = { code: 'statement_timeout', status: 504 }
  await assert.rejects(read({ table: 'people' }), { ...late, hint: undefined })
  await assert.rejects(add('people', { name: 'late' }), {
    ...late,
    hint: /not known whether the write was done/,
  })
  await proxy.mend()
  await slow.close()
  await proxy.close()
})

test('wrong credentials, a missing keyspace and a closed port have different failures, without their names', {
  skip,
}, async () => {
  const wrong = (change: (url: URL) => void) => {
    const url = new URL(keyspace.url)
    change(url)
    return driverOn(url.href, { connectTimeout: 1_000 })
  }
  for (const [client, code] of [
    [wrong((url) => Object.assign(url, { password: 'secret-word' })), 'client_refused'],
    [wrong((url) => Object.assign(url, { pathname: '/nowhere_at_all' })), 'client_refused'],
    [wrong((url) => Object.assign(url, { port: '1' })), 'client_unavailable'],
  ] as const) {
    await assert.rejects(client.probe(), (error: Error & { code?: string; hint?: string }) => {
      assert.equal(error.code, code, error.message)
      assert.doesNotMatch(`${error.message} ${error.hint}`, /secret-word|127\.0\.0\.1|nowhere_at_all/)
      return true
    })
    await client.close()
  }
})
