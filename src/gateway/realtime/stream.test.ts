import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { eventually } from '#test/embedded.ts'
import { pageOf } from '#test/event-stream.ts'
import { liveTables } from '#test/live-tables.ts'

const { t, key, sql, ddl, liveTable, follow, fetched, insert } = await liveTables('create schema sales')

test('a stream begins with the rows of a fetch, and tells each change of them', async () => {
  const table = await liveTable()
  await insert(table, [
    { id: 1, title: 'Emma', pages: 400 },
    { id: 2, title: 'Persuasion', pages: 250 },
  ])
  const stream = await follow([{ table_name: table, columns: ['id', 'title'] }])
  assert.equal(stream.status, 200)
  const { 'content-type': type, 'cache-control': cache, 'x-accel-buffering': buffering } = stream.headers
  assert.deepEqual(
    [type, cache, buffering],
    ['text/event-stream; charset=utf-8', 'no-store, no-transform', 'no'],
  )
  const snapshot = await stream.next()
  assert.deepEqual([snapshot.name, snapshot.data.table], ['snapshot', table])
  assert.deepEqual(snapshot.data.rows, await fetched(table, { columns: ['id', 'title'] }))
  const ready = await stream.next()
  assert.deepEqual([ready.name, ready.data.position, ready.id], ['ready', ready.id, stream.lastId()])

  await insert(table, { id: 3, title: 'Sanditon', pages: 90 })
  const inserted = await stream.next()
  const row = { id: 3, title: 'Sanditon' }
  assert.deepEqual([inserted.name, inserted.data], ['change', { table, op: 'insert', key: { id: 3 }, row }])
  assert.equal(inserted.id, stream.lastId())
  await sql(`update ${table} set title = 'The Watsons' where id = 3`)
  const updated = await stream.next('change')
  assert.deepEqual([updated.data.op, updated.data.row.title], ['update', 'The Watsons'])
  await sql(`delete from ${table} where id = 1`)
  const left = await stream.next()
  assert.deepEqual([left.name, left.data], ['leave', { table, key: { id: 1 } }])
  stream.close()
})

test('a row that comes to fit the conditions is an insert, and one that does so no more leaves', async () => {
  const table = await liveTable()
  await insert(table, { id: 1, title: 'Emma', pages: 400 })
  const conditions = { operator: 'gt', column: 'pages', value: 100 }
  const stream = await follow([{ table_name: table, conditions }])
  await stream.next('ready')
  await insert(table, [
    { id: 2, title: 'Lady Susan', pages: 80 },
    { id: 3, title: 'Sanditon', pages: 101 },
  ])
  assert.deepEqual((await stream.next()).data.key, { id: 3 })
  await sql(`update ${table} set pages = 120 where id = 2`)
  const grown = await stream.next()
  assert.deepEqual([grown.data.op, grown.data.key], ['insert', { id: 2 }])
  await sql(`update ${table} set pages = 10 where id = 1`)
  const left = await stream.next()
  assert.deepEqual([left.name, left.data.key], ['leave', { id: 1 }])
  assert.deepEqual([...pageOf(stream, table).values()], (await fetched(table, { conditions })).reverse())
  stream.close()
})

test('values are as in a fetch, with every digit, also json over several lines', async () => {
  const table = await liveTable(
    'id bigint primary key, amount numeric, at timestamptz, facts json, note text',
  )
  const stream = await follow([{ table_name: table }])
  await stream.next('ready')
  await sql(`insert into ${table} values (9007199254740993, 1.10, '2026-01-31 12:00+02',
    E'{"a":\\n\\r\\n 1,\\r "b": [2]}', E'two\\nlines\\u2028')`)
  const { data } = await stream.next('change')
  assert.deepEqual([data.row], await fetched(table))
  stream.close()
})

test('several tables, keys of several columns and other schemas are told apart', async () => {
  const pairs = await liveTable('a text, b int, id int, primary key (b, a)')
  await ddl('create table sales.orders (id uuid primary key)')
  const path = '/management/tables/orders/realtime'
  const enabled = await key.send('PUT', path, { body: { schema_name: 'sales', enabled: true } })
  assert.equal(enabled.status, 200, enabled.text)
  const stream = await follow([{ table_name: pairs }, { table_name: 'orders', schema_name: 'sales' }])
  const { data: first } = await stream.next()
  assert.deepEqual(first, { table: pairs, rows: [] })
  assert.deepEqual((await stream.next()).data, { table: 'sales.orders', rows: [] })
  await stream.next('ready')
  await sql(`insert into ${pairs} values ('x"y', 1, 1), ('z', 1, 2)`)
  const told = [await stream.next(), await stream.next()].map(({ data }) => data.key)
  assert.deepEqual(told, [
    { b: 1, a: 'x"y' },
    { b: 1, a: 'z' },
  ])
  const id = '018f0000-0000-7000-8000-000000000000'
  await sql(`insert into sales.orders values ('${id}')`)
  assert.deepEqual((await stream.next()).data, {
    table: 'sales.orders',
    op: 'insert',
    key: { id },
    row: { id },
  })
  stream.close()
})

test('transactions are told when they commit, in whatever order they wrote', async () => {
  const table = await liveTable()
  const stream = await follow([{ table_name: table }])
  await stream.next('ready')
  const [first, second] = [new pg.Client(t.clientUrl), new pg.Client(t.clientUrl)]
  for (const client of [first, second]) await client.connect()
  await first.query(`begin; insert into ${table} values (1, 'begun first')`)
  await second.query(`begin; insert into ${table} values (2, 'lost'); savepoint s; insert into ${table} values (3);
    rollback to s; insert into ${table} values (4, 'kept'); commit`)
  assert.deepEqual([(await stream.next()).data.key, (await stream.next()).data.key], [{ id: 2 }, { id: 4 }])
  await second.query(`begin; insert into ${table} values (5); rollback`)
  await first.query('commit')
  assert.deepEqual((await stream.next()).data.key, { id: 1 })
  for (const client of [first, second]) await client.end()
  stream.close()
})

test('a changed key leaves and comes, and a truncated table begins again', async () => {
  const table = await liveTable()
  await insert(table, [{ id: 1 }, { id: 2 }])
  const stream = await follow([{ table_name: table, columns: ['id'] }])
  await stream.next('ready')
  await sql(`update ${table} set id = 7 where id = 2`)
  const told = [await stream.next(), await stream.next()].map(({ name, data }) => [name, data.key.id])
  assert.deepEqual(told.toSorted(), [
    ['change', 7],
    ['leave', 2],
  ])
  await sql(`truncate ${table}`)
  assert.equal((await stream.next()).name, 'reset')
  assert.deepEqual((await stream.next('snapshot')).data.rows, [])
  await stream.next('ready')
  assert.equal(pageOf(stream, table).size, 0)
  stream.close()
})

test('without a snapshot, the stream tells what changes of the rows that a fetch shows', async () => {
  const table = await liveTable()
  await insert(table, { id: 1 })
  const stream = await follow([{ table_name: table }], {}, { snapshot: false })
  assert.equal((await stream.next()).name, 'ready')
  await sql(`delete from ${table} where id = 1`)
  assert.deepEqual([(await stream.next()).name, stream.seen.length], ['leave', 2])
  stream.close()
})

test('streams of equal requests, and those that come later, are told the same', async () => {
  const table = await liveTable()
  const streams = await Promise.all([1, 2, 3].map(() => follow([{ table_name: table }])))
  for (const stream of streams) await stream.next('ready')
  for (let id = 1; id <= 20; id++) {
    await insert(table, { id, pages: 1 })
    if (id % 5 === 0) streams.push(await follow([{ table_name: table }]))
    if (id % 3 === 0) await sql(`delete from ${table} where id = ${id - 1}`)
    if (id % 4 === 0) await sql(`update ${table} set pages = pages + 1`)
  }
  const rows = await fetched(table)
  const byId = (one: { id: number }, other: { id: number }) => one.id - other.id
  const shown = (stream: (typeof streams)[number]) =>
    ([...pageOf(stream, table).values()] as { id: number }[]).toSorted(byId)
  for (const stream of streams) await eventually(() => JSON.stringify(shown(stream)) === JSON.stringify(rows))
  for (const stream of streams) stream.close()
})

test('rows that are written while the snapshot is being read are told after it', async () => {
  const table = await liveTable('id int primary key, text text')
  // More than the buffers of the system hold.
  await sql(`insert into ${table} select n, repeat('x', 2000) from generate_series(1, 9000) n`)
  const stream = await follow([{ table_name: table }])
  await stream.next('snapshot')
  const goOn = stream.hold()
  await sql(`update ${table} set text = 'new' where id in (1, 9000); delete from ${table} where id in (2, 8999);
    insert into ${table} values (0, 'early'), (9001, 'late')`)
  goOn()
  await eventually(() => pageOf(stream, table).has('{"id":9001}') && !pageOf(stream, table).has('{"id":2}'))
  await eventually(() => pageOf(stream, table).size === 9000)
  const texts = [0, 1, 9000, 9001].map((id) => pageOf(stream, table).get(JSON.stringify({ id })))
  assert.deepEqual(texts, [
    { id: 0, text: 'early' },
    { id: 1, text: 'new' },
    { id: 9000, text: 'new' },
    { id: 9001, text: 'late' },
  ])
  stream.close()
})
