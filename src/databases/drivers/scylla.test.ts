import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Calls, calls, driverContract } from '#databases/drivers/contract.ts'
import type { Driver } from '#databases/drivers/driver.ts'
import { scyllaDriver } from '#databases/drivers/scylla/driver.ts'
import type { Body } from '#databases/fields.ts'
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
