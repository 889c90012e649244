import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import pg from 'pg'
import { OWN_LOCKS, testDatabase } from '#test/database.ts'
import { MigrationError, migrate, migrations, pendingMigrations } from './migrate.ts'
import { QUEUE_VERSION } from './queue-version.ts'

const all = migrations().map(({ name }) => name)

/** An empty database, and a client of it. */
async function database(context: { after(done: () => Promise<void>): void }) {
  const { url } = await testDatabase()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  context.after(() => client.end())
  const query = async (text: string, values: unknown[] = []) => (await client.query(text, values)).rows
  return { url, query, pending: () => pendingMigrations((text) => client.query(text)) }
}

test('an empty database gets every migration once, in order', async (context) => {
  const { url, query, pending } = await database(context)
  assert.deepEqual(await pending(), all)
  assert.deepEqual(await migrate(url), all)
  assert.deepEqual(await migrate(url), [])
  assert.deepEqual(await pending(), [])
  const applied = await query('select name, checksum from service.migration order by name')
  assert.deepEqual(
    applied,
    migrations().map(({ name, checksum }) => ({ name, checksum })),
  )
})

test('concurrent processes apply each migration once', async (context) => {
  const { url, query } = await database(context)
  const applied = await Promise.all(Array.from({ length: 5 }, () => migrate(url)))
  assert.deepEqual(applied.flat().toSorted(), all.toSorted())
  assert.equal(applied.filter((names) => names.length > 0).length, 1)
  assert.equal((await query('select from service.migration')).length, all.length)
})

test('a database that a newer version has used is refused with advice, and not changed', async (context) => {
  const { url, query, pending } = await database(context)
  await migrate(url)
  await query(`insert into service.migration (name, checksum) values ('9999_later.sql', 'x')`)
  const refused = (error: unknown) => {
    assert.ok(error instanceof MigrationError)
    assert.match(error.message, /9999_later\.sql.*newer version.*restore a backup/)
    return true
  }
  await assert.rejects(migrate(url), refused)
  await assert.rejects(pending(), refused)
  assert.equal((await query('select from service.migration')).length, all.length + 1)
})

test('a migration whose text has changed since is refused', async (context) => {
  const { url, query } = await database(context)
  await migrate(url)
  await query(`update service.migration set checksum = 'of another text' where name = $1`, [all[0]])
  await assert.rejects(migrate(url), {
    message: `Migration ${all[0]} was applied with another text. Migrations are never edited: add a new one.`,
  })
})

test('a failed migration is rolled back, and the migrations before it stay', async (context) => {
  const { url, query, pending } = await database(context)
  await migrate(url)
  // Its tables exist already, so that it has to fail.
  const from = migrations().findLastIndex(({ sql }) => /^create table /m.test(sql))
  await query('delete from service.migration where name = any($1)', [all.slice(from)])
  await assert.rejects(migrate(url), (error: unknown) => {
    assert.ok(error instanceof MigrationError)
    assert.match(error.message, new RegExp(`^Migration ${all[from]} failed: .*already exists`))
    return true
  })
  assert.deepEqual(await pending(), all.slice(from))
  assert.deepEqual(
    (await query('select name from service.migration order by name')).map(({ name }) => name),
    all.slice(0, from),
  )
})

test('a server that refuses pg_trgm is migrated without its indexes, which can be made later', async (context) => {
  const { url, query } = await database(context)
  // An object of the extension is in its way.
  await query(`create schema service;
    create function service.similarity(text, text) returns real language sql return 0`)
  assert.deepEqual(await migrate(url), all)
  const byPart = () => query(`select indexname from pg_indexes where indexname like '%by_part' order by 1`)
  assert.deepEqual(await byPart(), [])
  await query('drop function service.similarity(text, text)')
  for (const _again of [1, 2])
    assert.deepEqual(await query('select service.index_parts() as made'), [{ made: true }])
  assert.deepEqual(await byPart(), [{ indexname: 'organization_by_part' }, { indexname: 'user_by_part' }])
})

test('other roles may neither connect to the control database nor use its schema', async (context) => {
  const { url, query } = await database(context)
  await migrate(url)
  const [may] = await query(
    `select has_database_privilege('public', current_database(), 'connect') as connect,
            has_schema_privilege('public', 'service', 'usage') as usage,
            has_table_privilege('public', 'service."user"', 'select') as "select"`,
  )
  assert.deepEqual(may, { connect: false, usage: false, select: false })
})

test('a migration lock held by another session is waited for with a report, and then refused with the session’s process id', async (context) => {
  const { url, query } = await database(context)
  const [holder] = await query('select pg_backend_pid() as pid, pg_advisory_lock(7462001)')
  const steps: string[] = []
  await assert.rejects(migrate(url, { report: (step) => steps.push(step), patience: 300 }), {
    message: new RegExp(
      `process ${holder?.pid} of the server.*holds the migration lock.*pg_terminate_backend\\(${holder?.pid}\\)`,
    ),
  })
  assert.deepEqual(steps, ['wait for the migration lock'])
  assert.deepEqual(await query(`select to_regnamespace('service') as made`), [{ made: null }])

  const giveUp = new AbortController()
  const given = migrate(url, { report: () => giveUp.abort(new Error('enough')), signal: giveUp.signal })
  await assert.rejects(given, /enough/)
  await query('select pg_advisory_unlock(7462001)')
  assert.deepEqual(await migrate(url, { report: (step) => steps.push(step) }), all)
  assert.equal(steps.length, 1, 'nothing to wait for')
})

test('a migration that is aborted is rolled back', async (context) => {
  const { url, query } = await database(context)
  await migrate(url)
  await query('delete from service.migration where name = $1', [all.at(-1)])
  await query('begin; lock service.migration in access exclusive mode')
  const giveUp = new AbortController()
  const given = migrate(url, { signal: giveUp.signal })
  while (
    (await query(`select from ${OWN_LOCKS} where not granted and relation = 'service.migration'::regclass`))
      .length === 0
  )
    await setImmediate()
  giveUp.abort(new Error('enough'))
  await assert.rejects(given, /enough/)
  await query('rollback')
  assert.equal((await query('select from service.migration')).length, all.length - 1)
})

test('a job queue of a newer version is refused before anything is created, and one of this version is accepted', async (context) => {
  const { url, query, pending } = await database(context)
  await query(
    `create schema service_jobs; create table service_jobs.version as select ${QUEUE_VERSION + 1} as version`,
  )
  const refused = {
    message: new RegExp(
      `job queue.*schema ${QUEUE_VERSION + 1}.*works with ${QUEUE_VERSION}.*newer version.*restore a backup`,
    ),
  }
  await assert.rejects(migrate(url), refused)
  await assert.rejects(pending(), refused)
  assert.deepEqual(await query(`select to_regnamespace('service') as made`), [{ made: null }])
  await query(`update service_jobs.version set version = ${QUEUE_VERSION}`)
  assert.deepEqual(await migrate(url), all)
})
