import assert from 'node:assert/strict'
import { connect, createServer, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import type { OpenTransaction } from '#databases/drivers/driver.ts'
import { createPostgresDriver, type PostgresDriver } from '#databases/drivers/postgres/driver.ts'
import { EVERY_RIGHT } from '#databases/plan/rights.ts'
import { readFetch, readInsert, readUpdate } from '#databases/request/read-request.ts'
import type { WriteRequest } from '#databases/request/request.ts'
import { Failure } from '#kernel/errors.ts'
import { type TestDatabase, testDatabase, withClient } from '#test/database.ts'

const limits = {
  columns: 10,
  conditions: 10,
  nesting: 3,
  relations: 3,
  insertRows: 100_000,
  rows: 100,
  maxRows: 100,
}
let database: TestDatabase
let driver: PostgresDriver

const open = (url: string) =>
  createPostgresDriver({
    url,
    maxConnections: 2,
    sqlConnections: 4,
    maxWaiting: 1_000,
    connectTimeout: 3_000,
    // Longer than the server's deadlock_timeout.
    statementTimeout: 2_000,
    idleTimeout: 10_000,
    applicationName: 'transaction',
    maxRows: 100,
    answerBytes: 33_554_432,
  })

before(async () => {
  database = await testDatabase()
  driver = open(database.url)
  await driver.management.run([
    'create table note (id int primary key, text text)',
    'create table part (id int primary key, note_id int references note deferrable initially deferred)',
    'create view slow as select 1 as id, pg_sleep(60)::text as slept',
    `insert into note values (1, 'a'), (2, 'b')`,
  ])
})
after(async () => {
  await driver.close()
  await database.drop()
})

async function write(on: OpenTransaction | undefined, request: WriteRequest, by = driver) {
  const plan = await by.plan(request, EVERY_RIGHT)
  return plan.kind === 'insert'
    ? by.insert(plan, on)
    : plan.kind === 'update'
      ? by.update(plan, on)
      : by.delete(plan, on)
}
const insert = (on: OpenTransaction | undefined, table: string, row: object, by = driver) =>
  write(on, readInsert({ table, insert_body: row }, { limits }), by)
const update = (on: OpenTransaction | undefined, id: number, text: string, by = driver) =>
  write(
    on,
    readUpdate({ table: 'note', set: { text }, conditions: [{ eq_column: 'id', eq_value: id }] }, { limits }),
    by,
  )

async function read(on: OpenTransaction | undefined, body: object, by = driver): Promise<unknown[]> {
  const answer = await by.select(
    await by.plan(readFetch({ table: 'note', sort_by: { field: 'id' }, ...body }, { limits }), EVERY_RIGHT),
    on,
  )
  const chunks: Buffer[] = []
  for await (const chunk of answer.json) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString())
}

const fails = (code: string) => (error: unknown) => error instanceof Failure && error.code === code

/** Checks that both connections are outside transactions or closed: two concurrent callers can use the pool. */
async function inOrder(by = driver) {
  assert.equal(by.stats().waiting, 0)
  assert.equal(by.stats().idle, by.stats().total)
  const both = await Promise.all(
    [1, 2].map(() => by.transaction((on) => read(on, { columns: 'id', limit: 1 }, by), {})),
  )
  assert.deepEqual(both, [[{ id: 1 }], [{ id: 1 }]])
  const open = await withClient(database.url, (client) =>
    client.query(
      `select from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`,
    ),
  )
  assert.equal(open.rowCount, 0)
}

test('the work is committed together and not visible before', async () => {
  await driver.transaction(async (on) => {
    await insert(on, 'note', { id: 10, text: 'x' })
    assert.equal(
      (await read(on, { columns: 'id', conditions: [{ eq_column: 'id', eq_value: 10 }] })).length,
      1,
    )
    assert.equal(
      (await read(undefined, { columns: 'id', conditions: [{ eq_column: 'id', eq_value: 10 }] })).length,
      0,
    )
    await update(on, 10, 'y')
  }, {})
  assert.deepEqual(await read(undefined, { conditions: [{ eq_column: 'id', eq_value: 10 }] }), [
    { id: 10, text: 'y' },
  ])
  await inOrder()
})

test('anything that the work throws rolls it back', async () => {
  const work = async (on: OpenTransaction) => {
    await insert(on, 'note', { id: 20 })
    throw new Error('a bug')
  }
  await assert.rejects(driver.transaction(work, {}), /a bug/)
  await assert.rejects(
    driver.transaction(async (on) => {
      await insert(on, 'note', { id: 20 })
      await insert(on, 'note', { id: 1 })
    }, {}),
    fails('unique_violation'),
  )
  await assert.rejects(
    driver.transaction((on) => insert(on, 'note', { id: 1 }).catch(() => 'kept to itself'), {}),
    /continued after a statement had failed/,
  )
  assert.deepEqual(await read(undefined, { conditions: [{ eq_column: 'id', eq_value: 20 }] }), [])
  await inOrder()
})

test('a failure of the commit has its own code', async () => {
  await assert.rejects(
    driver.transaction((on) => insert(on, 'part', { id: 1, note_id: 99 }), {}),
    fails('foreign_key_violation'),
  )
  await inOrder()
})

test('of two transactions in a deadlock one fails, and both connections are released', async () => {
  const first = Promise.withResolvers<void>()
  const second = Promise.withResolvers<void>()
  const one = driver.transaction(async (on) => {
    await update(on, 1, 'one')
    first.resolve()
    await second.promise
    await update(on, 2, 'one')
  }, {})
  const other = driver.transaction(async (on) => {
    await update(on, 2, 'other')
    second.resolve()
    await first.promise
    await update(on, 1, 'other')
  }, {})
  const outcomes = await Promise.allSettled([one, other])
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
  assert.equal(refused.length, 1)
  assert.equal(refused[0]?.reason.code, 'write_conflict')
  await inOrder()
})

test('a transaction has the requested isolation, and a read-only one refuses writes', async () => {
  await assert.rejects(
    driver.transaction(
      async (on) => {
        await read(on, { columns: 'id' })
        await update(undefined, 1, 'meanwhile')
        await update(on, 1, 'mine')
      },
      { isolation: 'repeatable read' },
    ),
    fails('write_conflict'),
  )
  await assert.rejects(
    driver.transaction((on) => insert(on, 'note', { id: 30 }), { readOnly: true }),
    fails('read_only'),
  )
  await inOrder()
})

test('a statement that takes too long ends the transaction, not the connection', async () => {
  await assert.rejects(
    driver.transaction(async (on) => {
      await update(on, 1, 'late')
      await read(on, { table: 'slow' })
    }, {}),
    fails('statement_timeout'),
  )
  assert.notDeepEqual((await read(undefined, { columns: 'text', limit: 1 }))[0], { text: 'late' })
  await inOrder()
})

test('a connection with unread rows does not return to the pool', async () => {
  await driver.management.run([
    'create table wide as select id, repeat(id::text, 100000) as text from generate_series(1, 90) id',
  ])
  const before = driver.stats().total
  await driver
    .transaction(async (on) => {
      const answer = await driver.select(
        await driver.plan(readFetch({ table: 'wide' }, { limits }), EVERY_RIGHT),
        on,
      )
      assert.equal(Array.isArray(answer.json), false)
      throw new Error('not interested')
    }, {})
    .catch((error) => assert.equal(error.message, 'not interested'))
  assert.ok(driver.stats().total <= before)
  await inOrder()
})

test('tables that change under prepared statements do not fail a transaction', async () => {
  await driver.management.run(['create table moving (id int primary key)', 'insert into moving values (1)'])
  const rows = () => driver.transaction((on) => read(on, { table: 'moving', sort_by: [] }), {})
  for (let run = 0; run < 6; run++) await rows()
  await withClient(database.url, (client) => client.query('alter table moving alter id type text'))
  assert.deepEqual(await rows(), [{ id: '1' }])
  await inOrder()
})

test('a connection lost before the commit rolls back; lost at the commit, the result is unknown', async () => {
  const way = await proxy()
  const far = open(way.url)
  try {
    await assert.rejects(
      far.transaction(async (on) => {
        await insert(on, 'note', { id: 40 }, far)
        way.drop()
        await insert(on, 'note', { id: 41 }, far)
      }, {}),
      fails('connection_lost'),
    )
    await assert.rejects(
      far.transaction(async (on) => {
        await insert(on, 'note', { id: 40 }, far)
        way.drop()
      }, {}),
      (error) =>
        fails('connection_lost')(error) &&
        error instanceof Failure &&
        /not known whether/.test(error.hint ?? ''),
    )
    await inOrder(far)
    assert.deepEqual(
      await read(undefined, { conditions: [{ operator: 'in', column: 'id', value: [40, 41] }] }),
      [],
    )
  } finally {
    await far.close()
    way.close()
  }
})

/** A proxy to the server that can cut connections. */
async function proxy() {
  const target = new URL(database.url)
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(Number(target.port || 5432), target.hostname)
    for (const socket of [near, far]) sockets.add(socket.on('error', () => {}))
    near.pipe(far).pipe(near)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const drop = () => {
    for (const socket of sockets) socket.destroy()
    sockets.clear()
  }
  return {
    url: Object.assign(new URL(database.url), { hostname: '127.0.0.1', port: String(port) }).href,
    drop,
    close: () => {
      drop()
      server.close()
    },
  }
}
