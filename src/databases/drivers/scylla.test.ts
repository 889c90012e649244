import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Calls, calls, driverContract, textOf } from '#databases/drivers/contract.ts'
import type { Driver } from '#databases/drivers/driver.ts'
import { scyllaDriver } from '#databases/drivers/scylla/driver.ts'
import type { Body } from '#databases/fields.ts'
import { readFetch } from '#databases/requests.ts'
import { readScyllaUrl, type ScyllaUrl } from '#kernel/config/scylla-url.ts'
import { type Keyspace, missing, testKeyspace } from '#test/cassandra/server.ts'

const settings = {
  maxConnections: 4,
  connectTimeout: 10_000,
  statementTimeout: 30_000,
  idleTimeout: 60_000,
  applicationName: 'test',
  maxRows: 50,
}

let keyspace: Keyspace
let driver: Driver

const addressOf = (url: string): ScyllaUrl => {
  const address = readScyllaUrl(url)
  assert.ok(address)
  return address
}

before(async () => {
  if (missing) return
  keyspace = await testKeyspace()
  await keyspace.run(
    'create table big (part int, id int, body text, primary key (part, id))',
    `create table events (day date, id int, note text, primary key (day, id)) with clustering order by (id desc)`,
    'create table authors (shelf int, id bigint, name text, primary key (shelf, id))',
    `create table books (shelf int, id bigint, title text, author_id bigint, pages int, price decimal, exact decimal,
      tags list<text>, meta text, active boolean, lang text, primary key (shelf, id))`,
    ...['title', 'author_id', 'pages', 'exact', 'tags', 'active'].map(
      (column) => `create index on books (${column}) using 'sai'`,
    ),
  )
  driver = scyllaDriver({ address: addressOf(keyspace.url), ...settings })
})
after(async () => {
  await driver?.close()
  await keyspace?.stop()
})

const { fetch, insert, update, remove, count } = calls(() => driver)

/** All books and authors lie in one partition, and have numbers given to them in the order in which they come. */
const shelf = { column: 'shelf', value: 1 }
let given = { authors: 0, books: 0 }
const onShelf = (body: Body): Body => ({
  ...body,
  ...(body.allow_unbounded !== true && { conditions: [shelf, ...((body.conditions as Body[]) ?? [])] }),
})
const numbered = (table: 'authors' | 'books', row: Body): Body => ({
  shelf: 1,
  ...(row.id === undefined && { id: ++given[table] }),
  ...row,
  ...('meta' in row && { meta: JSON.stringify(row.meta) }),
})
const shelved: Calls = {
  fetch: (body) => fetch(onShelf(body)),
  update: (body) => update(onShelf(body)),
  remove: (body) => remove(onShelf(body)),
  count: (body) => count(onShelf(body)),
  insert(table, rows, more) {
    const list = Array.isArray(rows) ? rows : [rows]
    const known = table === 'authors' ? 'authors' : 'books'
    return insert(
      table,
      list.map((row) => numbered(known, row)),
      more,
    )
  },
}

if (!missing)
  driverContract({
    driver: () => driver,
    calls: shelved,
    key: { columns: ['shelf', 'id'], ofOne: { id: 1 } },
    many: 2_000,
    async reset() {
      given = { authors: 0, books: 0 }
      await keyspace.run('truncate authors', 'truncate books')
    },
    without: ['constraints', 'defaults'],
    cannot: [
      ...([
        'neq',
        'like',
        'ilike',
        'is',
        'in',
        'containedBy',
        'overlaps',
        'fts',
        'or',
        'not',
        'cast',
      ] as const),
      ...(['json', 'paging', 'relations', 'planned count', 'free writes', 'limited writes'] as const),
      ...(['hold', 'kept', 'call', 'run'] as const),
    ],
  })

test('every type is written as JSON that says the same', { skip: missing }, async () => {
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

test('rows come in the order of their partition, and what CQL would have to search for is refused', {
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

test('names and values of every kind stay what they are', { skip: missing }, async () => {
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

test('ten thousand rows come page by page, all of them once, and a reader may leave', {
  skip: missing,
}, async () => {
  const limits = { columns: 256, conditions: 100, nesting: 10, rows: 20_000, maxRows: 20_000 }
  for (let part = 0; part < 10; part++) {
    const rows = Array.from({ length: 1_000 }, (_, index) => ({
      part,
      id: part * 1_000 + index,
      body: 'x'.repeat(200),
    }))
    await insert('big', rows, { head: true })
  }
  const select = async () => driver.select(await driver.plan(readFetch({ table: 'big' }, { limits })))
  const answer = await select()
  assert.ok(!Array.isArray(answer.json))
  assert.throws(() => answer.facts())
  const rows = JSON.parse(await textOf(answer))
  assert.equal(new Set(rows.map(({ id }: { id: number }) => id)).size, 10_000)
  assert.deepEqual(
    [rows.length, answer.facts()],
    [10_000, { rows: 10_000, hasMore: false, total: undefined }],
  )
  for (let round = 0; round < 5; round++)
    for await (const chunk of (await select()).json) if (chunk.length > 0) break
  const part = await driver.select(
    await driver.plan(readFetch({ table: 'big', limit: 7_500, count: 'exact' }, { limits })),
  )
  assert.equal(JSON.parse(await textOf(part)).length, 7_500)
  assert.deepEqual(part.facts(), { rows: 7_500, hasMore: false, total: 10_000 })
  assert.deepEqual([driver.stats().waiting, driver.stats().circuit], [0, 'closed'])
})
