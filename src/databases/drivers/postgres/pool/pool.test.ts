import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createReadAheadBudgets } from '#databases/drivers/memory-budget.ts'
import { createPool } from '#databases/drivers/postgres/pool/pool.ts'
import { connect } from '#databases/drivers/postgres/protocol/connect.ts'
import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import { testDatabase } from '#test/database.ts'
import { startProxy } from '#test/hostile/proxy.ts'

const database = await testDatabase()
const settings = {
  url: database.url,
  connectTimeout: 5_000,
  statementTimeout: 5_000,
  applicationName: 'pool test',
}
const pool = createPool({
  ...settings,
  connect: () => connect(settings),
  terminate: () => {},
  maxConnections: 1,
  maxWaiting: 10,
  idleTimeout: 10_000,
  readAhead: createReadAheadBudgets(33_554_432),
})
after(async () => {
  await pool.close()
  await database.drop()
})

/** Uses the only connection, releases it, and returns whether the next caller gets it. */
async function isKept(use: (client: RowClient) => unknown): Promise<boolean> {
  const client = await pool.acquire()
  await use(client)
  pool.release(client)
  const next = await pool.acquire()
  const { rows } = await next.query('select 1 as one')
  assert.deepEqual(rows, [{ one: 1 }], 'the next caller has a connection that answers')
  pool.release(next)
  assert.equal(pool.stats().total, 1)
  return next === client
}

test('a connection that is released clean serves the next caller', async () => {
  assert.equal(await isKept((client) => client.query('select 1')), true)
})

test('a connection that is released while paused is closed', async () => {
  assert.equal(await isKept((client) => client.connection.stream.pause()), false)
})

test('a connection that is released with a partial message is closed', async () => {
  assert.equal(await isKept((client) => client.connection.stream.emit('data', Buffer.from('N\0'))), false)
})

test('a connection that is released in a transaction is closed', async () => {
  assert.equal(await isKept((client) => client.query('begin')), false)
})

test('a connection that is released with a running statement is closed', async () => {
  assert.equal(await isKept((client) => void client.query('select pg_sleep(5)').catch(() => {})), false)
})

test('when the network has dropped one connection, idle ones are closed too and the next caller gets a new one', async () => {
  const way = await startProxy(database.url)
  const hasty = { ...settings, url: way.url, statementTimeout: 500 }
  const several = createPool({
    ...hasty,
    connect: () => connect(hasty),
    terminate: () => {},
    maxConnections: 4,
    maxWaiting: 10,
    idleTimeout: 60_000,
    readAhead: createReadAheadBudgets(33_554_432),
  })
  const clients = await Promise.all([several.acquire(), several.acquire(), several.acquire()])
  for (const client of clients) several.release(client)
  assert.equal(several.stats().idle, 3)
  way.forget()
  const forgotten = await several.acquire()
  await assert.rejects(forgotten.query('select 1'), /terminated/)
  assert.equal(several.stats().idle, 0)
  const next = await several.acquire()
  assert.deepEqual((await next.query('select 1 as one')).rows, [{ one: 1 }])
  several.release(next)
  await several.close()
  await way.close()
})
