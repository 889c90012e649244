import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '#test/embedded.ts'
import { pageOf } from '#test/event-stream.ts'
import { liveTables } from '#test/live-tables.ts'

const { t, sql, liveTable, follow } = await liveTables('select 1')

test('a table whose key has another name is live again while other tables are followed', async () => {
  const [renamed, other] = [await liveTable(), await liveTable()]
  const [stream, beside] = [await follow([{ table_name: renamed }]), await follow([{ table_name: other }])]
  for (const one of [stream, beside]) await one.next('ready')
  await sql(`alter table ${renamed} rename column id to nr`)
  assert.equal((await stream.next('reset')).data.reason, 'table_changed')
  await stream.next('ready')
  await sql(`insert into ${renamed} (nr, title) values (1, 'told')`)
  // By a change, or by the snapshot after the new triggers.
  await eventually(() => stream.seen.some(({ data }) => JSON.stringify(data).includes('"title":"told"')))
  // One that begins now has the key of now.
  const later = await follow([{ table_name: renamed }])
  await later.next('ready')
  assert.deepEqual(
    later.seen.find(({ name }) => name === 'snapshot')?.data.rows.map(({ nr }: { nr: number }) => nr),
    [1],
  )
  await sql(`insert into ${other} values (1, 'beside')`)
  await eventually(() => pageOf(beside, other).size === 1)
  assert.ok(!beside.seen.some(({ name }) => name === 'reset'))
  for (const one of [stream, beside, later]) one.close()
})

test('keys that more streams would have to read than memory bears begin them again', async () => {
  const table = await liveTable('id int primary key, title text, pages int')
  // Each is a cohort of its own, which shows none of the rows.
  const streams = await Promise.all(
    Array.from({ length: 60 }, (_, index) =>
      follow([{ table_name: table, conditions: { eq_column: 'pages', eq_value: index + 1 } }]),
    ),
  )
  for (const stream of streams) await stream.next('ready')
  await sql(`insert into ${table} select n, 'new', 0 from generate_series(1, 9000) n`)
  for (const stream of streams) {
    assert.equal((await stream.next('reset')).data.reason, 'too_many')
    await stream.next('ready')
  }
  await sql(`update ${table} set pages = 7 where id = 7`)
  await eventually(() => pageOf(streams[6] ?? assert.fail(), table).size === 1)
  for (const stream of streams) stream.close()
})

test('changes of a client are deleted in time also where the control database does not know that it has live tables', async () => {
  const table = await liveTable()
  const { db } = t.service.kernel
  const known = () => db.selectFrom('realtimeClient').selectAll().execute()
  await eventually(async () => (await known()).length === 1)
  await db.deleteFrom('realtimeClient').execute()
  const stream = await follow([{ table_name: table }])
  await stream.next('ready')
  stream.close()
  await stream.ended
  assert.deepEqual(
    (await known()).map(({ clientName }) => clientName),
    ['default'],
  )
})
