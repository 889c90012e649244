import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '#test/embedded.ts'
import { type EventStream, pageOf } from '#test/event-stream.ts'
import { liveTables } from '#test/live-tables.ts'

/** About 8,500 keys of a number. */
const { sql, liveTable, follow } = await liveTables('select 1', { limits: { stream_keys: 1_048_576 } })

/** A live table with so many rows. */
async function tableOf(rows: number): Promise<string> {
  const table = await liveTable('id int primary key, title text')
  await sql(`insert into ${table} select n from generate_series(1, ${rows}) n`)
  return table
}

async function begun(table: string): Promise<EventStream> {
  const stream = await follow([{ table_name: table }])
  await stream.next('ready')
  return stream
}

async function endsByReset(stream: EventStream): Promise<void> {
  await stream.ended
  assert.deepEqual([stream.seen.at(-1)?.name, stream.seen.at(-1)?.data], ['reset', { reason: 'too_many' }])
}

const wasReset = ({ seen }: EventStream): boolean => seen.some(({ name }) => name === 'reset')

test('beyond the memory for keys, the stream with the most of them ends with a reset, and no other one', async () => {
  const [few, many, most] = [await tableOf(10), await tableOf(4_000), await tableOf(6_000)]
  const others = [await begun(few), await begun(many)]
  await endsByReset(await follow([{ table_name: most }]))
  for (const [index, table] of [few, many].entries()) {
    const stream = others[index] ?? assert.fail()
    await sql(`delete from ${table} where id = 1`)
    assert.deepEqual((await stream.next('leave')).data, { table, key: { id: 1 } })
    assert.ok(!wasReset(stream))
    stream.close()
    await stream.ended
  }
  // A stream that has ended takes nothing.
  const again = await begun(most)
  again.close()
})

test('rows that are written later count, too', async () => {
  const [small, growing] = [await tableOf(3_000), await tableOf(3_000)]
  const [other, stream] = [await begun(small), await begun(growing)]
  await sql(`insert into ${growing} select n from generate_series(3001, 9000) n`)
  await endsByReset(stream)
  await sql(`delete from ${small} where id > 2`)
  await eventually(() => pageOf(other, small).size === 2)
  assert.ok(!wasReset(other))
  other.close()
})

test('keys that streams share count once, and less for each than those of one stream', async () => {
  const [shared, own] = [await tableOf(4_000), await tableOf(3_500)]
  const streams: EventStream[] = []
  for (let count = 0; count < 3; count++) {
    streams.push(await begun(shared))
    // So that all are of one cohort.
    for (let change = 0; change < 3; change++) {
      await sql(`update ${shared} set title = '${count} ${change}' where id = 1`)
      for (const stream of streams) await stream.next('change')
    }
  }
  await sql(`insert into ${shared} select n from generate_series(4001, 6000) n`)
  for (const stream of streams) await eventually(() => pageOf(stream, shared).size === 6_000)
  await endsByReset(await follow([{ table_name: own }]))
  for (const stream of streams) {
    assert.ok(!wasReset(stream))
    stream.close()
  }
})
