import assert from 'node:assert/strict'
import { test } from 'node:test'
import { feedDatabase, feedOn, told } from '#test/changes.ts'

const { url, sql, session } = await feedDatabase()
const { feed, live, read } = feedOn(url)
await sql('create table orders (id int primary key)')
await live('orders')
const HOUR = 3_600_000
const notes = async () => (await sql('select count(*)::int as count from service_changes'))[0].count
/** As if the time had passed since the marks were made. */
const wait = (hours: number) => sql(`update service_changes_mark set at = at - interval '${hours} hours'`)

test('changes go when all positions of the time are past them, and older positions are too old', async () => {
  const start = await feed.position()
  await sql('insert into orders select n from generate_series(1, 10) n; insert into orders values (11)')
  await feed.prune(HOUR)
  // Not before its mark: transactions of other databases between the two count as well.
  const { position } = await read(start)
  await wait(0.5)
  await feed.prune(HOUR)
  assert.equal(await notes(), 2)
  assert.equal(told(await read(start)).length, 11)
  await wait(0.6)
  await sql('insert into orders values (12)')
  await feed.prune(HOUR)
  assert.equal(await notes(), 1)
  assert.deepEqual(await feed.read(start), { lost: 'too_old' })
  assert.deepEqual(told(await read(position)), ['orders insert {"id":12}'])
})

/** A mark is made, or the one of long ago is pruned by, and the next one is made. */
async function elapse(): Promise<void> {
  await wait(30)
  await feed.prune(HOUR)
}

test('what a long transaction commits late is kept for its readers', async () => {
  const writer = await session()
  await writer.run('begin; insert into orders values (20)')
  await elapse()
  const before = await feed.position()
  await sql('insert into orders values (21)')
  await elapse()
  await writer.run('commit')
  await feed.prune(HOUR)
  assert.deepEqual(told(await read(before)).toSorted(), [
    'orders insert {"id":20}',
    'orders insert {"id":21}',
  ])
  await elapse()
  assert.deepEqual(told(await read(await feed.position())), [])
  assert.equal(await notes(), 1, 'the mark of then saw the transaction running')
  await elapse()
  assert.equal(await notes(), 0)
  assert.deepEqual(await feed.read(before), { lost: 'too_old' })
  await writer.end()
})

test('a deletion waits for no writer, and no writer for it', async () => {
  const [writer, other] = [await session(), await session()]
  await sql('insert into orders select n from generate_series(100, 200) n')
  await elapse()
  await writer.run('begin; insert into orders values (30)')
  await other.run(`begin; insert into orders values (31)`)
  await elapse()
  assert.equal(await notes(), 0)
  await other.run(`set local lock_timeout = '1ms'; insert into orders values (32); commit`)
  await writer.run('commit')
  assert.equal(await notes(), 3)
  await Promise.all([writer.end(), other.end()])
})

test('more notes than one statement deletes go too', async () => {
  await sql(`insert into service_changes (relation, op) select 1, 'i' from generate_series(1, 11000)`)
  await elapse()
  await elapse()
  assert.equal(await notes(), 0)
})

test('a clock that is set back does not stop pruning', async () => {
  await sql(`delete from service_changes_mark;
    insert into service_changes_mark (at, seen) values (now() + interval '3 years', pg_current_snapshot())`)
  await feed.prune(24_000)
  const [{ count }] = await sql('select count(*)::int as count from service_changes_mark')
  assert.equal(count, 1)
  assert.deepEqual(await sql('select from service_changes_mark where at > now()'), [])
})
