import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '#test/embedded.ts'
import { pageOf } from '#test/event-stream.ts'
import { liveTables } from '#test/live-tables.ts'

const { sql, liveTable, follow, fetched } = await liveTables('select 1')

test('rows that one statement has made large are all told, without a reset', async () => {
  const table = await liveTable('id int primary key, text text')
  await sql(`insert into ${table} select n, 'small' from generate_series(1, 12) n`)
  const stream = await follow([{ table_name: table }])
  await stream.next('ready')
  await sql(`update ${table} set text = repeat('x', 700000)`)
  await eventually(() =>
    pageOf(stream, table)
      .values()
      .every(({ text }) => `${text}`.length > 5),
  )
  assert.deepEqual([...pageOf(stream, table).values()], await fetched(table))
  await sql(`update ${table} set text = 'small again'`)
  await eventually(() =>
    pageOf(stream, table)
      .values()
      .every(({ text }) => text === 'small again'),
  )
  assert.ok(!stream.seen.some(({ name }) => name === 'reset'))
  stream.close()
})
