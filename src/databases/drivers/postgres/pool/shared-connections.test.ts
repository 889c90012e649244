import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createPostgresDriver, type PostgresOptions } from '#databases/drivers/postgres/driver.ts'
import { type TestDatabase, testDatabase, testServerUrl, withClient } from '#test/database.ts'
import { type Calls, createCalls } from '#test/drivers/calls.ts'
import { startProxy } from '#test/hostile/proxy.ts'

let database: TestDatabase

before(async () => {
  database = await testDatabase()
  await withClient(database.url, (client) =>
    client.query(`
      create table note (id int primary key, text text);
      insert into note select n, 'note ' || n from generate_series(1, 1000) n;
      create table other (id int primary key);
      insert into other values (1);
      create table third (id int primary key)`),
  )
})
after(() => database.drop())

type Use = {
  readonly db: Calls
  readonly backends: () => Promise<readonly number[]>
  readonly close: () => Promise<void>
}

/** A driver whose connections have their own application name. */
async function using(
  maxConnections: number,
  work: (use: Use) => Promise<void>,
  more: Partial<PostgresOptions> = {},
): Promise<void> {
  const applicationName = `shared ${crypto.randomUUID()}`
  const driver = driverWith({ maxConnections, applicationName, ...more })
  const backends = () =>
    withClient(testServerUrl(), async (client) => {
      const text = 'select pid from pg_stat_activity where application_name = $1'
      return (await client.query<{ pid: number }>(text, [applicationName])).rows.map(({ pid }) => pid)
    })
  try {
    await work({ db: createCalls(() => driver), backends, close: driver.close })
  } finally {
    await driver.close()
  }
}

const driverWith = (more: Partial<PostgresOptions>) =>
  createPostgresDriver({
    url: database.url,
    maxConnections: 2,
    sqlConnections: 1,
    maxWaiting: 2_000,
    connectTimeout: 5_000,
    statementTimeout: 20_000,
    idleTimeout: 10_000,
    applicationName: 'shared',
    maxRows: 100,
    answerBytes: 33_554_432,
    ...more,
  })

async function postgresCatalogue() {
  const driver = driverWith({})
  try {
    return (await driver.catalogue()).tables
  } finally {
    await driver.close()
  }
}

const byKey = (table: string, value: unknown) => ({ table, conditions: { column: 'id', value } })
const ids = Array.from({ length: 50 }, (_, index) => index + 1)

async function readsItsRow(db: Calls, id: number): Promise<void> {
  assert.deepEqual((await db.fetch(byKey('note', id))).rows, [{ id, text: `note ${id}` }])
}

/** Locks the table against reads while the work runs. */
const whileLocked = (table: string, work: () => Promise<void>) =>
  withClient(database.url, async (client) => {
    await client.query(`begin; lock table ${table} in access exclusive mode`)
    await work()
    await client.query('commit')
  })

test('reads by key share a connection, and each gets its own row', async () => {
  const work = async ({ db }: Use) => {
    await readsItsRow(db, 1)
    await readsItsRow(db, 2)
    // Without sharing one would be under way, one would wait, and the others would be refused.
    const none = [1, 2, 3].map((id) => db.fetch(byKey('note', -id)))
    await Promise.all([3, 4, 5, 6, 7].map((id) => readsItsRow(db, id)))
    for (const { rows } of await Promise.all(none)) assert.deepEqual(rows, [])
  }
  await using(1, work, { maxWaiting: 1 })
})

test('where callers may not wait for a connection, they do not wait on a shared one either', async () => {
  const work = async ({ db }: Use) => {
    await readsItsRow(db, 1)
    const reads = await Promise.allSettled(ids.map((id) => readsItsRow(db, id)))
    const refused = reads.filter((read) => read.status === 'rejected')
    assert.equal(refused.length, ids.length - 1)
    for (const { reason } of refused) assert.equal(reason.code, 'client_busy')
  }
  await using(1, work, { maxWaiting: 0 })
})

test('slow reads run at the same time, on separate connections', async () => {
  await withClient(database.url, (client) =>
    client.query(`
      create table large (id int primary key, text text);
      insert into large select n, repeat(md5(n::text), 100000) from generate_series(1, 8) n`),
  )
  await using(6, async ({ db, backends }) => {
    await db.fetch(byKey('large', 1))
    for (let round = 0; round < 4; round++)
      await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map((id) => db.fetch(byKey('large', id))))
    assert.ok((await backends()).length >= 4, `${(await backends()).length} connections`)
  })
})

test('tables with children, policies or other code in a read are read on separate connections', async () => {
  await withClient(database.url, (client) =>
    client.query(`
      create table parent (id int primary key);
      create table child () inherits (parent);
      create table guarded (id int primary key);
      alter table guarded enable row level security;
      create view seen as select * from other`),
  )
  const plain = new Map((await postgresCatalogue()).map(({ name, isPlain }) => [name, isPlain]))
  assert.deepEqual(
    ['note', 'parent', 'guarded', 'seen'].map((name) => plain.get(name)),
    [true, false, false, false],
  )
})

test('a closed driver reads no more', async () => {
  await using(2, async ({ db, close }) => {
    await readsItsRow(db, 1)
    const timer = setInterval(() => void readsItsRow(db, 1).catch(() => {}), 1)
    await sleep(50)
    await close()
    await assert.rejects(readsItsRow(db, 1), { code: 'client_unavailable' })
    clearInterval(timer)
  })
})

test('a read that fails does not affect others', async () => {
  await using(2, async ({ db }) => {
    await readsItsRow(db, 1)
    const all = ids.map(async (id) => {
      if (id % 3 > 0) return readsItsRow(db, id)
      await assert.rejects(db.fetch(byKey('note', `${id} is no number`)), { status: 422 })
    })
    await Promise.all(all)
  })
})

test('reads of a locked table delay no others, and finish when it is unlocked', async () => {
  await using(20, async ({ db }) => {
    await Promise.all([readsItsRow(db, 1), db.fetch(byKey('other', 1))])
    let waiting: Promise<unknown>[] = []
    await whileLocked('other', async () => {
      for (let round = 0; round < 3; round++) {
        waiting = [...waiting, ...[1, 2, 3].map(() => db.fetch(byKey('other', 1)))]
        await Promise.all(ids.map((id) => readsItsRow(db, id)))
      }
      const silence = await Promise.race([...waiting, sleep(50, 'silence')])
      assert.equal(silence, 'silence')
    })
    for (const answer of await Promise.all(waiting))
      assert.partialDeepStrictEqual(answer, { rows: [{ id: 1 }] })
  })
})

test('the late answer of a displaced read is discarded', async () => {
  await using(5, async ({ db }) => {
    await Promise.all([readsItsRow(db, 1), db.fetch(byKey('other', 1)), db.fetch(byKey('third', 1))])
    let behind: Promise<unknown>[] = []
    await whileLocked('third', async () => {
      let first: Promise<unknown> | undefined
      await whileLocked('other', async () => {
        first = db.fetch(byKey('other', 1))
        behind = [db.fetch(byKey('third', 1)), ...ids.map((id) => readsItsRow(db, id))]
        await Promise.all(behind.slice(1))
      })
      await first
      // Were its connection used again, the answer about the third table would come first.
      for (const id of ids) await readsItsRow(db, id)
    })
    assert.partialDeepStrictEqual(await behind[0], { rows: [] })
    for (const id of ids) await readsItsRow(db, id)
  })
})

test('when the server ends shared connections, at most the read being answered fails', async () => {
  await using(4, async ({ db, backends }) => {
    await Promise.all(ids.map((id) => readsItsRow(db, id)))
    const pids = await backends()
    let reads: Promise<void>[] = []
    await whileLocked('note', async () => {
      reads = ids.map((id) => readsItsRow(db, id))
      for (const read of reads) read.catch(() => {})
      await sleep(30)
      await withClient(testServerUrl(), (client) =>
        client.query('select pg_terminate_backend(pid, 10000) from unnest($1::int[]) pid', [pids]),
      )
    })
    const failed = (await Promise.allSettled(reads)).filter((read) => read.status === 'rejected')
    assert.ok(failed.length <= pids.length, `${failed.length} of ${reads.length}`)
    for (const { reason } of failed) assert.equal(reason.code, 'connection_lost')
    await Promise.all(ids.map((id) => readsItsRow(db, id)))
  })
})

test('a table that changes under reads by key fails none of them', async () => {
  await using(4, async ({ db }) => {
    for (let round = 0; round < 3; round++) await Promise.all(ids.map((id) => readsItsRow(db, id)))
    const reading = ids.map(async (id) => {
      for (let round = 0; round < 20; round++)
        assert.equal((await db.fetch({ ...byKey('note', id), columns: 'text' })).rows[0].text, `note ${id}`)
    })
    for (const type of ['varchar(100)', 'text', 'varchar(50)', 'text'])
      await withClient(database.url, (client) => client.query(`alter table note alter text type ${type}`))
    await Promise.all(reading)
  })
})

test('reads by key that never end leave the only connection to others', async () => {
  // So that some are always under way.
  const far = await startProxy(database.url, { delay: 3 })
  const work = async ({ db }: Use) => {
    const reads = new Set<Promise<void>>()
    const timer = setInterval(() => {
      if (reads.size >= 16) return
      const read = readsItsRow(db, 1).finally(() => reads.delete(read))
      reads.add(read)
    }, 1)
    for (let round = 0; round < 5; round++)
      assert.equal(await db.count({ table: 'other', conditions: { column: 'id', value: 1 } }), 1)
    clearInterval(timer)
    await Promise.all(reads)
  }
  await using(1, work, { url: far.url })
  await far.close()
})

test('a value of megabytes is complete, and so are the reads after it', async () => {
  await withClient(database.url, (client) =>
    client.query(`insert into note select 5000, repeat('0123456789', 2000000)`),
  )
  await using(4, async ({ db }) => {
    const [large] = await Promise.all([
      db.fetch(byKey('note', 5_000)),
      ...ids.map((id) => readsItsRow(db, id)),
    ])
    assert.equal(large.rows[0].text.length, 20_000_000)
  })
})
