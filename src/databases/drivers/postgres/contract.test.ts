import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { createPostgresDriver, type PostgresDriver } from '#databases/drivers/postgres/driver.ts'
import { EVERY_RIGHT } from '#databases/plan/rights.ts'
import { readFetch } from '#databases/request/read-request.ts'
import { type TestDatabase, testDatabase } from '#test/database.ts'
import { BOOKSHOP_TABLES } from '#test/drivers/bookshop-tables.ts'
import { createCalls, ORDINARY_LIMITS, textOf } from '#test/drivers/calls.ts'
import { driverContract } from '#test/drivers/contract.ts'
import { ANY_CHARACTER } from '#test/property/any-character.ts'

const settings = {
  maxConnections: 4,
  sqlConnections: 4,
  maxWaiting: 1_000,
  connectTimeout: 2_000,
  statementTimeout: 10_000,
  idleTimeout: 10_000,
  applicationName: 'test',
  maxRows: 50,
  answerBytes: 33_554_432,
}

let database: TestDatabase
let driver: PostgresDriver

before(async () => {
  database = await testDatabase()
  driver = createPostgresDriver({ url: database.url, ...settings })
  await driver.management.run([...BOOKSHOP_TABLES])
})
after(async () => {
  await driver.close()
  await database.drop()
})

const { fetch, insert } = createCalls(() => driver)

driverContract({
  driver: () => driver,
  reset: () => driver.management.run(['truncate books, authors restart identity cascade']),
})

test('every type is written as equivalent JSON', async () => {
  await driver.management.run([
    `create type mood as enum ('happy', 'sad')`,
    `create type place as (x int, label text)`,
    `create domain positive as int check (value > 0)`,
    `create table kinds (id int primary key, b boolean, i2 smallint, i4 int, i8 bigint, n numeric, f4 real, f8 double precision, t text,
      v varchar(5), c char(3), u uuid, d date, ts timestamp, tz timestamptz, tm time, iv interval, j json, jb jsonb, by bytea, ip inet,
      r int4range, m mood, p place, dom positive, ai int[], at text[], atz timestamptz[], aj jsonb[], aa int[], bits bit(3), o oid)`,
  ])
  const row = {
    id: 1, b: true, i2: -32768, i4: 2147483647, i8: 42, n: '1.500', f4: 0.5, f8: 1e300, t: 'quote " back \\ tab \t nul-free \u0001 ü 😀',
    v: 'äöü', c: 'a', u: '0197f2c8-0000-7000-8000-000000000001', d: '2026-01-31', ts: '2026-01-31 10:20:30.5', tz: '2026-01-31T10:20:30.123456+02:00',
    tm: '10:20:30', iv: '1 day 2 hours', j: { a: [1, null] }, jb: ['x'], by: '\\xDEADBEEF', ip: '10.0.0.1', r: '[1,5)', m: 'sad', p: { x: 1, label: 'a,"b' },
    dom: 3, ai: [1, null, 3], at: ['a', 'b"c\\d', null, ''], atz: ['2026-01-31T00:00:00Z'], aj: [{ a: 1 }, 'x', null], aa: [[1, 2], [3, 4]], bits: '101', o: 26,
  } // biome-ignore format: a table
  const out = {
    ...row, n: 1.5, c: 'a  ', ts: '2026-01-31T10:20:30.5', tz: '2026-01-31T08:20:30.123456Z', iv: 'P1DT2H', by: '\\xdeadbeef',
  } // biome-ignore format: a table
  assert.deepEqual((await insert('kinds', row)).rows, [out])
  const { text } = await fetch({ table: 'kinds', columns: 'n,tz' })
  assert.equal(text, '[{"n":1.500,"tz":"2026-01-31T08:20:30.123456Z"}]')
  // The same row in an insert of many rows, beside a row without values.
  const bulk = await insert('kinds', [{ ...row, id: 2 }, { id: 3 }])
  assert.deepEqual(bulk.rows[0], { ...out, id: 2 })
  assert.equal(Object.values(bulk.rows[1]).filter((value) => value !== null).length, 1)
})

test('numbers and dates that JSON or ISO 8601 cannot express are texts', async () => {
  await driver.management.run([
    `create table odd (id int primary key, f double precision, n numeric, d date, ts timestamp, tz timestamptz)`,
  ])
  await insert('odd', [
    { id: 1, f: 'NaN', n: 'NaN', d: 'infinity', ts: '-infinity', tz: 'infinity' },
    {
      id: 2,
      f: '-Infinity',
      n: 'Infinity',
      d: '0044-03-15 BC',
      ts: '0044-03-15 10:00:00 BC',
      tz: '12026-01-01 00:00:00Z',
    },
  ])
  const { rows } = await fetch({ table: 'odd', sort_by: 'id' })
  assert.deepEqual(rows, [
    { id: 1, f: 'NaN', n: 'NaN', d: 'infinity', ts: '-infinity', tz: 'infinity' },
    {
      id: 2,
      f: '-Infinity',
      n: 'Infinity',
      d: '0044-03-15 BC',
      ts: '0044-03-15 10:00:00 BC',
      tz: '12026-01-01 00:00:00+00',
    },
  ])
})

test('any text, JSON and number is read as it was written', async () => {
  await driver.management.run([
    `create table anything (id int primary key, t text, j jsonb, f double precision, a text[])`,
  ])
  const safe = fc.string({ unit: ANY_CHARACTER }).filter((text) => !text.includes('\0'))
  const json = fc.jsonValue().filter((value) => value !== null && !JSON.stringify(value).includes('\\u0000'))
  const double = fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0)
  const rows = fc.array(
    fc.record({ t: safe, j: json, f: double, a: fc.array(safe) }, { noNullPrototype: true }),
    { minLength: 1, maxLength: 20 },
  )
  await fc.assert(
    fc.asyncProperty(rows, async (given) => {
      await driver.management.run(['truncate anything'])
      const numbered = given.map((row, id) => ({ id, ...row }))
      const expected = JSON.parse(JSON.stringify(numbered))
      assert.deepEqual((await insert('anything', numbered)).rows, expected)
      const { rows: read } = await fetch({ table: 'anything', sort_by: 'id', limit: 50 })
      assert.deepEqual(read, expected)
    }),
    { numRuns: 60 },
  )
})

test('rows are the same JSON as json_agg of the database', async () => {
  await driver.management.run([
    `create table mixed as select i as id, repeat(chr(i + 1), i % 7) as t, i % 3 = 0 as b, i * 1.10 as n, i / 7.0::float8 as f,
      case when i % 5 > 0 then now() + i * interval '1 h' end as at, array[i, null] as a, json_build_object('k', i) as j
     from generate_series(1, 50) i`,
  ])
  const nested = await fetch({ table: 'mixed', columns: 'id,t,b,n,f,a,j', sort_by: 'id', limit: 50 })
  const client = createPostgresDriver({ url: database.url, ...settings })
  await client.management.run([
    `create view agg as select json_agg(m order by id) as rows from (select id, t, b, n, f, a, j from mixed) m`,
  ])
  const { rows } = await createCalls(() => client).fetch({ table: 'agg' })
  await client.close()
  assert.deepEqual(nested.rows, rows[0].rows)
})

test('a large answer is streamed, and its connection is released however it ends', async () => {
  await driver.management.run([
    `create table large as select i as id, repeat('x', 10000) as t from generate_series(1, 1000) i`,
  ])
  const limits = ORDINARY_LIMITS
  const select = async () =>
    driver.select(await driver.plan(readFetch({ table: 'large' }, { limits }), EVERY_RIGHT))
  const whole = await select()
  assert.ok(!Array.isArray(whole.json))
  assert.throws(() => whole.facts())
  const text = await textOf(whole)
  assert.equal(JSON.parse(text).length, 1_000)
  assert.deepEqual(whole.facts(), { rows: 1_000, hasMore: false, total: undefined })
  for (let round = 0; round < 10; round++) {
    const left = await select()
    for await (const chunk of left.json) if (chunk.length > 0) break
  }
  for (let round = 0; round < 10; round++) {
    const unread = await select()
    if (!Array.isArray(unread.json)) await (unread.json as AsyncIterableIterator<Buffer>).return?.()
  }
  assert.equal((await fetch({ table: 'large', columns: 'id', limit: 1 })).rows.length, 1)
  assert.equal(driver.stats().waiting, 0)
})

test('external changes are seen: new tables and columns at once, dropped ones by the next plan', async () => {
  const other = createPostgresDriver({ url: database.url, ...settings })
  await driver.catalogue()
  await other.management.run(['create table late (a int, b int)', 'insert into late values (1, 2)'])
  await new Promise((resolve) => setTimeout(resolve, 1_050))
  assert.deepEqual((await fetch({ table: 'late' })).rows, [{ a: 1, b: 2 }])
  await other.management.run([
    'alter table late drop column b',
    `alter table late add column c text default 'new'`,
  ])
  assert.deepEqual((await fetch({ table: 'late' })).rows, [{ a: 1, c: 'new' }])
  await other.management.run(['alter table late alter column a type text'])
  for (let round = 0; round < 3; round++)
    assert.deepEqual((await fetch({ table: 'late', columns: 'a' })).rows, [{ a: '1' }])
  await other.management.run(['drop table late'])
  await assert.rejects(fetch({ table: 'late' }), { code: 'table_not_found', status: 404 })
  await other.close()
})

test('after a change of its type a column takes values of the new type, also with statements prepared for the old one', async () => {
  const later = () =>
    fetch({
      table: 'moments',
      conditions: [{ operator: 'gt', column: 'at', value: '2026-01-31T12:00:00+02:00' }],
    })
  const add = (small: number | string) => insert('moments', { small, at: '2026-01-31T13:00:00+02:00' })
  await driver.management.run(['create table moments (small smallint, at timestamp)'])
  for (let time = 0; time < 3; time++) assert.equal((await add(1)).affected, 1)
  for (let time = 0; time < 3; time++) assert.equal((await later()).rows.length, 3)
  await driver.management.run([
    'truncate moments',
    'alter table moments alter small type text, alter at type timestamptz',
  ])
  await add('not a number')
  assert.deepEqual((await later()).rows, [{ small: 'not a number', at: '2026-01-31T11:00:00Z' }])
})

test('a relation with several foreign keys names them, and one of them can be chosen', async () => {
  await driver.management.run([
    'create table matches (id int primary key, home_id bigint references authors, guest_id bigint references authors, next_id int references matches)',
    'truncate books, authors restart identity cascade',
  ])
  await insert('authors', [{ name: 'Ada' }, { name: 'Bob' }])
  await insert('matches', [{ id: 1, home_id: 1, guest_id: 2 }])
  await insert('matches', [{ id: 2, home_id: 2, guest_id: 1, next_id: 1 }])
  await assert.rejects(fetch({ table: 'matches', columns: 'authors(name)' }), {
    code: 'ambiguous_relation',
    hint: /authors!matches_home_id_fkey, authors!matches_guest_id_fkey|authors!matches_guest_id_fkey, authors!matches_home_id_fkey/,
  })
  const { rows } = await fetch({
    table: 'matches',
    columns: 'home:authors!matches_home_id_fkey(name),guest:guest_id(name),next_id(id)',
    sort_by: 'id',
  })
  assert.deepEqual(rows, [
    { home: { name: 'Ada' }, guest: { name: 'Bob' }, next_id: null },
    { home: { name: 'Bob' }, guest: { name: 'Ada' }, next_id: { id: 1 } },
  ])
})

test('a computed column is not written, and a view without a key takes no limited write', async () => {
  await driver.management.run([
    'create table computed (id int generated always as identity primary key, a int, twice int generated always as (a * 2) stored)',
    'create view seen as select * from computed',
  ])
  for (const row of [{ twice: 1 }, { id: 1 }])
    await assert.rejects(insert('computed', row), { code: 'column_not_writable', status: 400 })
  assert.deepEqual((await insert('seen', { a: 2 }, { columns: 'a,twice' })).rows, [{ a: 2, twice: 4 }])
  assert.deepEqual((await insert('computed', [{}, {}], { columns: 'id' })).rows, [{ id: 2 }, { id: 3 }])
  assert.deepEqual((await insert('computed', {}, { columns: 'id' })).rows, [{ id: 4 }])
})
