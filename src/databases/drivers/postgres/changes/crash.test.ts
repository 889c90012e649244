import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Batch, LostPosition, Position } from '#databases/drivers/changes.ts'
import { feedOn, sessionOn } from '#test/changes.ts'
import { startCrashableServer } from '#test/crashable-server.ts'
import { eventually } from '#test/embedded.ts'

/** Rollbacks leave to it what they write, so that it is not on the disk yet. */
const SETTINGS = { wal_writer_delay: '10s' }
const server = await startCrashableServer({ after }, 'create table orders (id int primary key)', SETTINGS)
const { feed, live } = feedOn(server.url)
await live('orders')

/** Connections from before have broken. */
async function readAgain(position: Position): Promise<Batch | LostPosition> {
  let read: Batch | LostPosition | undefined
  await eventually(async () => {
    read = await feed.read(position).catch(() => undefined)
    return read !== undefined
  })
  return read ?? assert.fail()
}

test('after a crash a position is lost, since transactions get numbers that others had before', async () => {
  // The first one begins an epoch, whose commit would take everything before it to the disk.
  await feed.position()
  const before = await sessionOn(server.url)
  for (let id = 1; id <= 50; id++) await before.run(`begin; insert into orders values (${id}); rollback`)
  const position = await feed.position()
  await before.end()
  await server.stop('immediate')
  await server.start()
  const later = await sessionOn(server.url)
  for (let id = 1; id <= 80; id++) await later.run(`insert into orders values (${id})`)
  await later.end()
  assert.deepEqual(await readAgain(position), { lost: 'epoch' })
})

test('after a shutdown it is not', async () => {
  const position = await feed.position()
  await server.stop('fast')
  await server.start()
  const batch = await readAgain(position)
  assert.ok('tables' in batch && batch.tables.length === 0, JSON.stringify(batch))
})
