import assert from 'node:assert/strict'
import { test } from 'node:test'
import { feedDatabase, feedOn, publicTable, told } from '#test/changes.ts'

const { url, sql, session } = await feedDatabase()
const { feed, live, names, read } = feedOn(url)
await sql(`create table parted (id int primary key) partition by range (id);
  create table part partition of parted for values from (0) to (100);
  create table base (id int primary key); create table child (primary key (id)) inherits (base);
  create unlogged table volatile (id int primary key)`)

test('a partition, a child table and an unlogged table are not made live: not every write fires their triggers', async () => {
  for (const table of ['part', 'child', 'volatile'])
    await assert.rejects(feed.enable(publicTable(table)), { code: 'not_live', status: 400 }, table)
})

test('a live table that becomes a partition or unlogged is live no more, and holds up no other one', async () => {
  await sql('create table later (id int primary key); create table other (id int primary key)')
  await live('later', 'other')
  const start = await feed.position()
  await sql(
    'alter table parted attach partition later for values from (100) to (200); insert into later values (100)',
  )
  assert.deepEqual(told(await read(start)), ['later reset table_changed'])
  assert.deepEqual(await names(), ['other'])
  const [problem] = await feed.problems()
  assert.match(problem?.why ?? '', /^has triggers of live rows, but is unlogged, a partition/)
  const next = await feed.position()
  await sql('alter table other set unlogged')
  assert.deepEqual(told(await read(next)), ['other reset table_changed'])
  assert.deepEqual(await names(), [])
  await sql('alter table parted detach partition later; alter table other set logged')
  assert.deepEqual((await names()).toSorted(), ['later', 'other'])
})

test('a partition that comes below a partition is told as a change of the table', async () => {
  await sql(`create table deep (id int primary key) partition by range (id);
    create table deeper partition of deep for values from (0) to (100) partition by range (id);
    create table deepest (id int primary key); insert into deepest values (5)`)
  await live('deep')
  const start = await feed.position()
  await sql('alter table deeper attach partition deepest for values from (0) to (10)')
  const { position, ...batch } = await read(start)
  assert.deepEqual(told({ position, ...batch }), ['deep reset table_changed'])
  await sql('alter table deeper detach partition deepest')
  assert.deepEqual(told(await read(position)), ['deep reset table_changed'])
})

test('a feed that its functions may not write to fails no writer, and is another epoch from then on', async () => {
  await sql('create table closed (id int primary key)')
  await live('closed')
  const role = `"${new URL(url).username}"`
  const closings = {
    [`revoke insert on service_changes from ${role}`]: `grant insert on service_changes to ${role}`,
    'alter table service_changes force row level security':
      'alter table service_changes no force row level security',
  }
  for (const [close, open] of Object.entries(closings)) {
    const start = await feed.position()
    await sql(`${close}; insert into closed select coalesce(max(id), 0) + 1 from closed`)
    assert.deepEqual(await feed.read(start), { lost: 'epoch' }, close)
    assert.deepEqual(await names(), [], close)
    await sql(open)
    const again = await feed.position()
    await sql('delete from closed')
    assert.deepEqual(told(await read(again)), ['closed delete {"id":1}'])
  }
  const start = await feed.position()
  await sql('insert into closed values (1); truncate service_changes')
  assert.deepEqual(await feed.read(start), { lost: 'epoch' })
})

test('a table whose key has another name, and which is locked, holds up no other one', async () => {
  await sql('create table held (id int primary key); create table free (id int primary key)')
  await live('held', 'free')
  await sql('alter table held rename id to number')
  const writer = await session()
  await writer.run('begin; insert into held values (1)')
  const start = await feed.position()
  await sql('insert into free values (1)')
  assert.deepEqual(told(await read(start)), ['free insert {"id":1}'])
  assert(!(await names()).includes('held'))
  await writer.run('commit')
  await writer.end()
  await feed.position()
  assert((await names()).includes('held'))
})
