import assert from 'node:assert/strict'
import { test } from 'node:test'
import { feedDatabase, feedOn, publicTable, told } from '#test/changes.ts'
import { withClient } from '#test/database.ts'
import { installedPrograms, startInstalledServer } from '#test/installed-postgres.ts'

const { url, sql, session } = await feedDatabase()
const { feed, live, read } = feedOn(url)
await sql(`create table orders (id int primary key, state text);
  create table "Odd ""names""" ("a ""b""" text, id bigint, note text, primary key (id, "a ""b"""))`)
await live('orders', 'Odd "names"')

test('a position tells what was committed after it, and its batch what comes next', async () => {
  const start = await feed.position()
  await sql(`insert into orders values (1, 'new'), (2, 'new')`)
  await sql(`update orders set state = 'paid' where id = 1; delete from orders where id = 2`)
  const first = await read(start)
  assert.deepEqual(told(first), ['orders insert {"id":1}', 'orders delete {"id":2}'])
  assert.deepEqual(told(await read(first.position)), [])
  await sql(`update orders set state = 'sent' where false; delete from orders where false`)
  await sql('update orders set state = state')
  assert.deepEqual(told(await read(first.position)), ['orders update {"id":1}'])
  assert.deepEqual(told(await read(start)), ['orders delete {"id":2}', 'orders insert {"id":1}'])
})

test('a transaction that commits late is told late, whatever numbers it has', async () => {
  const [slow, quick] = [await session(), await session()]
  const start = await feed.position()
  await slow.run('begin')
  await slow.run(`insert into orders values (10, 'slow')`)
  await quick.run(`insert into orders values (11, 'quick')`)
  const first = await read(start)
  assert.deepEqual(told(first), ['orders insert {"id":11}'])
  await quick.run(`insert into orders values (12, 'quick')`)
  const second = await read(first.position)
  assert.deepEqual(told(second), ['orders insert {"id":12}'])
  await slow.run('commit')
  const third = await read(second.position)
  assert.deepEqual(told(third), ['orders insert {"id":10}'])
  assert.deepEqual(told(await read(third.position)), [])
  assert.deepEqual(
    told(await read(start)).toSorted(),
    [10, 11, 12].map((id) => `orders insert {"id":${id}}`),
  )
  await Promise.all([slow.end(), quick.end()])
})

test('the last change of a key wins, although its transaction has the lower number', async () => {
  const [older, younger] = [await session(), await session()]
  const start = await feed.position()
  await older.run('begin')
  await older.run(`insert into orders values (20, 'takes a number')`)
  await younger.run(`insert into orders values (21, 'first')`)
  await older.run('delete from orders where id = 21')
  await older.run('commit')
  assert.deepEqual(told(await read(start)), ['orders insert {"id":20}', 'orders delete {"id":21}'])
  await Promise.all([older.end(), younger.end()])
})

test('nothing is told of what was rolled back, also to a savepoint', async () => {
  const start = await feed.position()
  const writer = await session()
  await writer.run(`begin; insert into orders values (30); rollback`)
  await writer.run(`begin; insert into orders values (31); savepoint s; insert into orders values (32);
    rollback to s; insert into orders values (33); release s; commit`)
  await writer.end()
  assert.deepEqual(told(await read(start)), ['orders insert {"id":31}', 'orders insert {"id":33}'])
})

test('a truncated table and a statement of more than 10,000 keys are told as resets', async () => {
  let { position } = await read(await feed.position())
  const next = async () => {
    const batch = await read(position)
    position = batch.position
    return told(batch)
  }
  await sql('insert into orders select n from generate_series(100001, 110000) n')
  assert.equal((await next()).length, 10_000)
  await sql('insert into orders select n from generate_series(200001, 210001) n')
  assert.deepEqual(await next(), ['orders reset too_many'])
  await sql(`insert into orders select n from generate_series(300001, 306000) n;
    insert into orders select n from generate_series(400001, 406000) n`)
  assert.deepEqual(await next(), ['orders reset too_many'], 'of several statements in one batch')
  await sql('truncate orders; insert into orders values (1)')
  assert.deepEqual(await next(), ['orders reset truncated'])
})

test('a changed primary key is the end of one row and the begin of another', async () => {
  await sql('delete from orders; insert into orders values (1), (2), (3)')
  const start = await feed.position()
  await sql('update orders set id = 9 where id = 1')
  const first = await read(start)
  assert.deepEqual(told(first), ['orders delete {"id":1}', 'orders insert {"id":9}'])
  await sql('alter table orders drop constraint orders_pkey, add primary key (id) deferrable')
  const second = await read(first.position)
  assert.deepEqual(told(second), ['orders reset table_changed'])
  await sql('update orders set id = 5 - id where id in (2, 3)')
  const third = await read(second.position)
  assert.deepEqual(told(third).toSorted(), ['orders update {"id":2}', 'orders update {"id":3}'])
  await sql('update orders set id = id + 1 where id in (2, 3)')
  assert.deepEqual(
    told(await read(third.position)),
    ['orders update {"id":2}', 'orders insert {"id":4}', 'orders update {"id":3}'],
    'with a deferrable key another row may have that of a deleted one',
  )
  await sql('alter table orders drop constraint orders_pkey, add primary key (id)')
})

test('a partitioned table is noted by what is written through it, and tells of its partitions', async () => {
  await sql(`create table parted (id int primary key, note text) partition by range (id);
    create table low partition of parted for values from (0) to (100); create table high partition of parted for values from (100) to (200)`)
  await live('parted')
  const start = await feed.position()
  await sql(
    `insert into parted values (1), (101); update parted set id = 102 where id = 1; delete from parted where id = 101`,
  )
  const first = await read(start)
  assert.deepEqual(told(first).toSorted(), [
    'parted delete {"id":101}',
    'parted delete {"id":1}',
    'parted insert {"id":102}',
  ])
  await sql('alter table parted detach partition high')
  assert.deepEqual(told(await read(first.position)), ['parted reset table_changed'])
})

test('keys of several columns, with quotes in their names and values', async () => {
  const start = await feed.position()
  await sql(`insert into "Odd ""names""" values ('it''s {"x", \\ }', 9007199254740993)`)
  await sql(`update "Odd ""names""" set note = 'n'; update "Odd ""names""" set "a ""b""" = ''`)
  const { tables } = await read(start)
  const [first] = tables
  assert(first !== undefined && 'keys' in first)
  assert.deepEqual(
    first.keys.map(({ op, key }) => [op, key.values, key.json]),
    [
      [
        'delete',
        ['9007199254740993', `it's {"x", \\ }`],
        `{"id":9007199254740993,"a \\"b\\"":"it's {\\"x\\", \\\\ }"}`,
      ],
      ['insert', ['9007199254740993', ''], '{"id":9007199254740993,"a \\"b\\"":""}'],
    ],
  )
  assert.deepEqual((await feed.tables()).find(({ table }) => table.table === 'Odd "names"')?.key, [
    'id',
    'a "b"',
  ])
})

test('cascades, upserts, merges and COPY are noted as what they do', async () => {
  await sql(`create table parent (id int primary key);
    create table child (id int primary key, parent int references parent on delete cascade);
    insert into parent values (1); insert into child values (7, 1)`)
  await live('child', 'parent')
  const start = await feed.position()
  await sql('delete from parent')
  const first = await read(start)
  assert.deepEqual(told(first).toSorted(), ['child delete {"id":7}', 'parent delete {"id":1}'])
  await sql(`insert into parent values (2), (3) on conflict do nothing`)
  await sql(`insert into parent values (3), (4) on conflict (id) do update set id = excluded.id`)
  assert.deepEqual(
    told(await read(first.position)),
    [2, 3, 4].map((id) => `parent insert {"id":${id}}`),
  )
})

test('positions of strangers are lost', async () => {
  const position = await feed.position()
  const [epoch, structure, rest] = position.split('.')
  const wrong = ['', 'x', position.slice(1), `${position},`, `${'0'.repeat(32)}.${structure}.${rest}`]
  wrong.push(`${epoch}.${structure}.99999999999999999999:`, `${epoch}.${structure}.18446744073709551615:`)
  wrong.push(`${epoch}.${structure}.3:${'4,'.repeat(5_000)}4`, `${position}'; drop table orders; --`)
  for (const text of wrong) assert.deepEqual(await feed.read(text), { lost: 'epoch' }, text.slice(0, 100))
  assert.deepEqual(await feed.read(`${epoch}.${'0'.repeat(32)}.${rest}`), { lost: 'table_changed' })
})

const programs = await installedPrograms()
test('a prepared transaction is told when it is committed', {
  skip: programs === undefined && 'needs an installed PostgreSQL',
}, async () => {
  const server = await startInstalledServer(programs ?? '', {
    settings: ['fsync=off', 'max_prepared_transactions=2'],
  })
  try {
    const there = await server.database('prepared')
    const run = (text: string) => withClient(there, (client) => client.query(text))
    await run('create table orders (id int primary key)')
    const other = feedOn(there)
    await other.live('orders')
    const start = await other.feed.position()
    await run(`begin; insert into orders values (1); prepare transaction 'p'`)
    await run('insert into orders values (2)')
    const first = await other.read(start)
    assert.deepEqual(told(first), ['orders insert {"id":2}'])
    await run(`commit prepared 'p'`)
    assert.deepEqual(told(await other.read(first.position)), ['orders insert {"id":1}'])
    await other.driver.close()
  } finally {
    await server.stop()
  }
})

test('a table without a primary key, a view, and names of the service cannot be live', async () => {
  await sql(`create table keyless (id int); create view seen as select 1 as id; create table ranged (id int4range primary key);
    create domain target as regclass; create table named (id int, target target, primary key (id, target)); create table priced (id money primary key)`)
  // Names of objects, and money, have other texts in the sessions of writers.
  for (const table of ['keyless', 'seen', 'ranged', 'named', 'priced'])
    await assert.rejects(feed.enable(publicTable(table)), { code: 'no_primary_key', status: 400 }, table)
  await assert.rejects(feed.enable(publicTable('missing')), { code: 'table_not_found' })
  await assert.rejects(feed.enable(publicTable('service_changes_state')), { code: 'invalid_identifier' })
})
