import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { pageOf } from '#test/event-stream.ts'
import { liveTables } from '#test/live-tables.ts'

const { t, sql, liveTable, follow, fetched } = await liveTables('select 1', {
  clients: { default: { statement_timeout: 500 } },
})

test('a stream that breaks in the middle of a later snapshot has another one when it comes back', async () => {
  const table = await liveTable('id int primary key, text text')
  // Several events.
  await sql(`insert into ${table} select n, repeat('x', 30000) from generate_series(1, 10) n`)
  const first = await follow([{ table_name: table }])
  await first.next('ready')
  await withClient(t.clientUrl, async (locking) => {
    await locking.query(`begin; lock table ${table} in access exclusive mode`)
    // Its row cannot be read, and nothing in the feed tells why.
    await sql(`insert into service_changes (relation, op, keys) values ('${table}'::regclass, 'u', '{1}')`)
    assert.equal((await first.next('reset')).data.reason, 'table_changed')
    await locking.query('commit')
  })
  await first.next('ready')
  first.close()
  const beginning = first.seen.findIndex(({ name }) => name === 'reset')
  // All that a page has got when its connection breaks after the first piece of the snapshot.
  const got = first.seen.slice(0, beginning + 2)
  assert.equal(got.at(-1)?.name, 'snapshot')
  const lastId = got.findLast(({ id }) => id !== undefined)?.id ?? assert.fail()
  const second = await follow([{ table_name: table }], { 'last-event-id': lastId })
  await second.next('ready')
  const shown = [...pageOf({ seen: [...got, ...second.seen] }, table).values()]
  assert.deepEqual(
    shown.map(({ id }) => id),
    (await fetched(table)).map(({ id }: { id: number }) => id),
  )
  second.close()
})

test('a stream that comes back and breaks again at once loses nothing', async () => {
  const table = await liveTable('id int primary key, text text')
  await sql(`insert into ${table} values (1, 'goes'), (2, 'stays')`)
  const first = await follow([{ table_name: table }])
  await first.next('ready')
  first.close()
  await first.ended
  await sql(`delete from ${table} where id = 1; insert into ${table} values (3, 'new')`)
  const second = await follow([{ table_name: table }], { 'last-event-id': first.lastId() ?? assert.fail() })
  const { id } = await second.next('ready')
  second.close()
  const third = await follow([{ table_name: table }], { 'last-event-id': id ?? assert.fail() })
  await third.next('ready')
  await sql(`insert into ${table} values (4, 'last')`)
  await eventually(() => third.seen.some(({ data }) => data.key?.id === 4))
  const shown = pageOf({ seen: [...first.seen, ...third.seen] }, table)
  assert.deepEqual([...shown.values()].map(({ id }) => id).toSorted(), [2, 3, 4])
  third.close()
})

test('a stream that cannot tell at once what has changed since its last event begins again with a snapshot', async () => {
  const table = await liveTable('id int primary key, text text')
  await sql(`insert into ${table} values (1, 'before')`)
  // Its reader goes on, so that the other one begins without asking the feed.
  const beside = await follow([{ table_name: table }])
  const first = await follow([{ table_name: table }])
  for (const stream of [beside, first]) await stream.next('ready')
  const lastId = first.lastId() ?? assert.fail()
  first.close()
  await first.ended
  const second = await withClient(t.clientUrl, async (locking) => {
    await locking.query('begin; lock table service_changes in access exclusive mode')
    const stream = await follow([{ table_name: table }], { 'last-event-id': lastId })
    assert.equal((await stream.next()).name, 'reset')
    await locking.query('commit')
    return stream
  })
  await second.next('ready')
  const names = second.seen.map(({ name }) => name)
  assert.deepEqual(names.slice(names.lastIndexOf('reset')), ['reset', 'snapshot', 'ready'])
  for (const stream of [beside, second]) stream.close()
})
