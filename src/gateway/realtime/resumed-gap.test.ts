import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { OWN_LOCKS, withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { pageOf } from '#test/event-stream.ts'
import { liveTables } from '#test/live-tables.ts'

const { t, sql, liveTable, follow } = await liveTables('select 1')

/** Statements that wait for a lock of the table. */
const waiting = async (table: string): Promise<number> =>
  (
    await sql(
      `select count(*)::int as count from ${OWN_LOCKS} where relation = '${table}'::regclass and not granted`,
    )
  )[0].count

async function lock(table: string): Promise<pg.Client> {
  const client = new pg.Client(t.clientUrl)
  await client.connect()
  await client.query(`begin; lock table ${table} in access exclusive mode`)
  return client
}

test('a row that leaves between the two readings of a stream that comes back is told', async () => {
  const table = await liveTable()
  await sql(`insert into ${table} values (1, 'leaves'), (2, 'stays')`)
  // It keeps the reader and its catalogue, so that the stream that comes back asks for nothing but its own.
  const beside = await follow([{ table_name: table, columns: ['id'] }])
  const before = await follow([{ table_name: table }])
  for (const one of [beside, before]) await one.next('ready')
  before.close()
  await before.ended
  const lastId = before.lastId() ?? assert.fail()

  const feed = await lock('service_changes')
  const resumed = await follow([{ table_name: table }], { 'last-event-id': lastId })
  // The reader's own look, and that of the stream for the changes since its last event.
  await eventually(async () => (await waiting('service_changes')) === 2)
  const rows = await lock(table)
  await feed.query('commit')
  await eventually(async () => (await waiting('service_changes')) === 0)
  await rows.query(`delete from ${table} where id = 1; commit`)
  for (const client of [feed, rows]) await client.end()

  await eventually(() => pageOf({ seen: [...before.seen, ...resumed.seen] }, table).size === 1)
  assert.equal(resumed.seen[0]?.name, 'ready')
  assert.equal(resumed.seen[0]?.id, lastId, 'nothing after it has been told, so it resumes there again')
  await withClient(t.clientUrl, (client) => client.query(`insert into ${table} values (3)`))
  await eventually(() => resumed.seen.some(({ data }) => data.key?.id === 3))
  assert.deepEqual(
    resumed.seen.filter(({ name }) => name === 'leave').map(({ data }) => data.key),
    [{ id: 1 }],
  )
  for (const one of [beside, resumed]) one.close()
})
