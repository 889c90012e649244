import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import {
  createPostgresDriver,
  type PostgresDriver,
  type PostgresOptions,
} from '#databases/drivers/postgres/driver.ts'
import { Failure } from '#kernel/errors.ts'
import { type TestDatabase, testDatabase, withClient } from '#test/database.ts'
import { createCalls } from '#test/drivers/calls.ts'
import { eventually } from '#test/embedded.ts'
import { startProxy } from '#test/hostile/proxy.ts'

let database: TestDatabase

before(async () => {
  database = await testDatabase()
  await using(database.url, {}, async (driver) => {
    await driver.management.run([
      'create table notes (id int primary key, text text)',
      `insert into notes values (1, 'a')`,
      'create view slow as select 1 as id, pg_sleep(60)::text as slept',
    ])
  })
})
after(() => database.drop())

async function using<T>(
  url: string,
  options: Partial<PostgresOptions>,
  work: (driver: PostgresDriver) => Promise<T>,
): Promise<T> {
  const driver = createPostgresDriver({
    url,
    maxConnections: 2,
    sqlConnections: 4,
    maxWaiting: 1_000,
    connectTimeout: 5_000,
    statementTimeout: 5_000,
    idleTimeout: 10_000,
    applicationName: 'resilience',
    maxRows: 100,
    answerBytes: 33_554_432,
    ...options,
  })
  try {
    return await work(driver)
  } finally {
    await driver.close()
  }
}

const note = (driver: PostgresDriver) => createCalls(() => driver).fetch({ table: 'notes', columns: 'text' })
const readSlow = (driver: PostgresDriver) => createCalls(() => driver).fetch({ table: 'slow' })
/** Until so many slow reads of the driver of this name are in the middle of their statement. */
const slowRuns = (applicationName: string, count: number) =>
  eventually(() =>
    withClient(database.url, async (client) => {
      const running = `select from pg_stat_activity where datname = current_database() and application_name = $1 and wait_event = 'PgSleep'`
      return (await client.query(running, [applicationName])).rowCount === count
    }),
  )

test('a database that is down fails with 503 at once, and is used again when it is back', async () => {
  const way = await startProxy(database.url)
  await using(way.url, {}, async (driver) => {
    assert.equal((await note(driver)).rows.length, 1)
    await way.cut()
    await eventually(() => driver.stats().total === 0)
    await assert.rejects(note(driver), { code: 'client_unavailable', status: 503 })
    assert.equal(driver.stats().circuit, 'open')
    for (let round = 0; round < 50; round++)
      await assert.rejects(note(driver), { code: 'client_unavailable' })
    assert.equal(driver.stats().circuit, 'open', 'nobody has waited for a probe')
    await way.mend()
    await sleep(1_050)
    assert.equal(driver.stats().circuit, 'half_open')
    assert.equal((await note(driver)).rows.length, 1)
    assert.equal(driver.stats().circuit, 'closed')
  })
  await way.close()
})

test('a lost idle connection is replaced, a connection lost in use fails with 502', async () => {
  const way = await startProxy(database.url)
  await using(way.url, { applicationName: 'lost in use' }, async (driver) => {
    await note(driver)
    way.drop()
    await eventually(() => driver.stats().total === 0)
    assert.equal((await note(driver)).rows.length, 1)
    const running = readSlow(driver)
    await slowRuns('lost in use', 1)
    way.drop()
    await assert.rejects(running, { code: 'connection_lost', status: 502 })
    assert.equal((await note(driver)).rows.length, 1)
  })
  await way.close()
})

test('a terminated backend fails with 502, and the next call works', async () => {
  await using(database.url, { applicationName: 'to be ended' }, async (driver) => {
    const running = assert.rejects(readSlow(driver), { code: 'connection_lost', status: 502 })
    const other = new pg.Client(database.url)
    await other.connect()
    for (let rows = 0; rows === 0; await sleep(50)) {
      const ended = await other.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'to be ended' and state = 'active' and query like '%slow%'`,
      )
      rows = ended.rowCount ?? 0
    }
    await other.end()
    await running
    assert.equal((await note(driver)).rows.length, 1)
  })
})

test('a connection that the server has ended is not used again, although it is still open', async () => {
  const way = await startProxy(database.url, { lingers: true })
  await using(way.url, { applicationName: 'bidden farewell' }, async (driver) => {
    await note(driver)
    const farewell = `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and application_name = 'bidden farewell'`
    await withClient(database.url, (client) => client.query(farewell))
    await sleep(100)
    const late = sleep(20_000, undefined, { ref: false }).then(() => assert.fail('no answer'))
    assert.equal((await Promise.race([note(driver), late])).rows.length, 1)
  })
  await way.close()
})

test('a statement that takes too long fails with 504 and leaves its connection usable', async () => {
  await using(database.url, { statementTimeout: 700 }, async (driver) => {
    await assert.rejects(readSlow(driver), { code: 'statement_timeout', status: 504 })
    assert.equal((await note(driver)).rows.length, 1)
    assert.equal(driver.stats().total, 1)
  })
})

test('callers beyond the number of connections wait, and fail with 503 when none becomes free', async () => {
  await using(
    database.url,
    { applicationName: 'crowded', connectTimeout: 1_000, statementTimeout: 4_000 },
    async (driver) => {
      await note(driver)
      const slow = [0, 1].map(() => assert.rejects(readSlow(driver), { code: 'statement_timeout' }))
      await slowRuns('crowded', 2)
      await assert.rejects(note(driver), { code: 'client_busy', status: 503 })
      await Promise.all(slow)
      await eventually(() => driver.stats().idle === driver.stats().total)
      assert.deepEqual([driver.stats().waiting, driver.stats().circuit], [0, 'closed'])
    },
  )
  await using(database.url, {}, async (driver) => {
    const many = await Promise.all(Array.from({ length: 200 }, () => note(driver)))
    assert.ok(many.every(({ rows }) => rows[0].text === 'a'))
  })
})

// AuthenticationOk, two settings, ReadyForQuery.
const WELCOME = Buffer.from(
  'R\0\0\0\x08\0\0\0\0S\0\0\0\x11TimeZone\0UTC\0S\0\0\0\x1bIntervalStyle\0iso_8601\0Z\0\0\0\x05I',
)
for (const [behaviour, greeting] of [
  ['never answers', ''],
  ['falls silent after the login', WELCOME],
] as const)
  test(`connecting to a server that ${behaviour} fails after the connect timeout`, async () => {
    const mute = createServer((socket) => void socket.once('data', () => socket.write(greeting)))
    mute.listen(0, '127.0.0.1')
    await once(mute, 'listening')
    const { port } = mute.address() as AddressInfo // of a server on a port
    await using(`postgres://a:secret@127.0.0.1:${port}/b`, { connectTimeout: 500 }, async (driver) => {
      const late = sleep(20_000, undefined, { ref: false }).then(() => assert.fail('no answer'))
      await assert.rejects(Promise.race([note(driver), late]), { code: 'client_unavailable', status: 503 })
      assert.deepEqual(driver.stats(), { total: 0, idle: 0, waiting: 0, circuit: 'open' })
    })
    mute.close()
  })

test('a probe of a silent server does not wait forever', async () => {
  const way = await startProxy(database.url)
  await using(way.url, { statementTimeout: 1_000 }, async (driver) => {
    await note(driver)
    way.freeze()
    const late = sleep(30_000, undefined, { ref: false }).then(() => assert.fail('no answer'))
    await assert.rejects(Promise.race([driver.probe(), late]), { code: 'connection_lost' })
  })
  await way.close()
})

test('the failure of a wrong password has no host, name or password', async () => {
  const url = Object.assign(new URL(database.url), {
    password: 'not-the-password',
    username: 'nobody_of_that_name',
  }).href
  await using(url, {}, async (driver) => {
    await assert.rejects(note(driver), (error) => {
      assert.ok(error instanceof Failure)
      assert.equal(error.status, 502)
      const told = JSON.stringify([error.message, error.hint, error.details])
      for (const secret of ['not-the-password', 'nobody_of_that_name', new URL(url).hostname])
        assert.ok(!told.includes(secret), told)
      return true
    })
  })
})

test('an invalid URL, or a server without the required TLS, is a failure of the client and not a bug', async () => {
  for (const url of ['postgres://a:b@', `${database.url}?sslmode=verify-full`])
    await using(url, {}, async (driver) => {
      await assert.rejects(
        note(driver),
        (error) => error instanceof Failure && (error.status === 502 || error.status === 503),
      )
    })
})

test('a role with too many rights is refused on every new pool', async () => {
  // biome-ignore lint/style/noProcessEnv: where the test run has put its server
  const { TEST_SERVER_URL: server } = process.env
  assert.ok(server)
  const url = Object.assign(new URL(server), { pathname: `/${database.name}` }).href
  await using(url, {}, async (driver) => {
    for (let round = 0; round < 3; round++)
      await assert.rejects(note(driver), { code: 'unsafe_client', status: 503 })
    assert.deepEqual(driver.stats(), { total: 0, idle: 0, waiting: 0, circuit: 'closed' })
  })
  await using(url, { allowServerRights: true }, async (driver) => {
    assert.equal((await note(driver)).rows.length, 1)
  })
})

test('a role that can read the control schema is refused even for an unsafe client', async () => {
  const control = await testDatabase()
  const owner = new pg.Client(control.url)
  await owner.connect()
  await owner.query('create schema service; create table service.session (id int)')
  await owner.end()
  await using(control.url, { allowServerRights: true }, async (driver) => {
    await assert.rejects(driver.probe(), {
      code: 'unsafe_client',
      details: { reasons: ['can read the control schema'] },
    })
  })
  await control.drop()
})

test('a read-only client refuses writes with 403', async () => {
  await using(database.url, { readOnly: true }, async (driver) => {
    const { insert } = createCalls(() => driver)
    await assert.rejects(insert('notes', { id: 9 }), { code: 'read_only', status: 403 })
    assert.equal((await note(driver)).rows.length, 1)
  })
})

test('recurring statements are prepared, and a connection keeps a hundred of them', async () => {
  await using(database.url, { maxConnections: 1, applicationName: 'counting' }, async (driver) => {
    const { fetch } = createCalls(() => driver)
    for (let round = 0; round < 3; round++) {
      for (let limit = 1; limit <= 50; limit++) await fetch({ table: 'notes', limit })
      for (let limit = 1; limit <= 50; limit++) await fetch({ table: 'notes', columns: 'id', limit })
      for (let limit = 1; limit <= 50; limit++) await fetch({ table: 'notes', columns: 'text', limit })
    }
    await driver.management.run([
      'create view prepared as select count(*) as statements from pg_prepared_statements',
    ])
    const { rows } = await fetch({ table: 'prepared' })
    assert.ok(rows[0].statements >= 50 && rows[0].statements <= 100, JSON.stringify(rows))
  })
})

test('a failure of a prepared statement leaves it prepared and the connection usable', async () => {
  await using(database.url, { maxConnections: 1 }, async (driver) => {
    const { fetch } = createCalls(() => driver)
    const where = (value: unknown) => ({ table: 'notes', conditions: [{ column: 'id', value }] })
    for (let round = 0; round < 5; round++) {
      assert.equal((await fetch(where(1))).rows.length, 1)
      await assert.rejects(fetch(where('x')), { code: 'invalid_value' })
      await assert.rejects(fetch(where('x'.repeat(100))), { code: 'invalid_value' })
    }
    assert.equal(driver.stats().total, 1)
  })
})

test('statements of management run in one transaction', async () => {
  await using(database.url, {}, async (driver) => {
    await assert.rejects(
      driver.management.run(['create table half (id int)', 'create table notes (id int)']),
      {
        code: 'object_exists',
        status: 409,
      },
    )
    await assert.rejects(createCalls(() => driver).fetch({ table: 'half' }), { code: 'table_not_found' })
    assert.equal(driver.stats().total, driver.stats().idle)
  })
})
