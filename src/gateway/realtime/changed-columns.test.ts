import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pageOf } from '#test/event-stream.ts'
import { liveTables } from '#test/live-tables.ts'

const { sql, liveTable, follow, fetched } = await liveTables('select 1')

test('columns that are added past the gateway are in the rows of a stream as of a fetch', async () => {
  const table = await liveTable()
  await sql(`insert into ${table} values (1, 'first')`)
  const stream = await follow([{ table_name: table }])
  await stream.next('ready')
  await sql(`alter table ${table} add column note text default 'added'`)
  assert.equal((await stream.next('reset')).data.reason, 'table_changed')
  await stream.next('ready')
  const shown = [...pageOf(stream, table).values()]
  assert.deepEqual(shown, [{ id: 1, title: 'first', pages: null, note: 'added' }])
  assert.deepEqual(shown, await fetched(table))
  stream.close()
})
