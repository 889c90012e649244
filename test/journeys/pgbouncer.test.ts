import assert from 'node:assert/strict'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { defaultConfig } from '#kernel/config/config.ts'
import { createLog } from '#kernel/log.ts'
import { secureRandom } from '#kernel/random.ts'
import { createSecrets } from '#kernel/secrets.ts'
import { openDatabases, openLogging } from '#startup/open-databases.ts'
import { dropInstallations, OWN_LOCKS, testDatabase, testServerUrl, withClient } from '#test/database.ts'
import { ADMIN_KEY, type Answer, actor, PASSWORD, TEST_SECRET } from '#test/harness.ts'
import { startPgBouncer, WITHOUT_PGBOUNCER } from '#test/pgbouncer.ts'
import { readiness } from '#test/readiness.ts'
import { removeFolder } from '#test/temporary-folder.ts'
import { startService } from '../../src/app.ts'

const skip = WITHOUT_PGBOUNCER
const pooler = skip === false ? await startPgBouncer(testServerUrl()) : undefined
const dir = await mkdtemp(path.join(tmpdir(), 'gatehouse-pooled-'))
const control = (await testDatabase({ isControl: true })).name
const client = await testDatabase()
const direct = Object.assign(new URL(testServerUrl()), { pathname: `/${control}` }).href
const through = (url: string): string =>
  Object.assign(new URL(url), { hostname: '127.0.0.1', port: String(pooler?.port) }).href
const secrets = createSecrets(TEST_SECRET, secureRandom)
const log = createLog({ level: 'silent', format: 'json' })

after(async () => {
  await pooler?.stop()
  await removeFolder(dir)
  await dropInstallations(control)
})

const configFor = (database: { url: string; direct_url?: string }) => {
  const base = defaultConfig({ database, server: { port: 0, data_dir: dir } })
  const clients = defaultConfig({ clients: { pooled: { url: through(client.url) } } }).clients
  return {
    ...base,
    clients,
    auth: { ...base.auth, password: { ...base.auth.password, memory: 1_024, iterations: 1 } },
  }
}

/** Again when the machine was so busy that a connection did not open within five seconds. */
async function started(...[options]: Parameters<typeof startService>) {
  for (;;) {
    try {
      return await startService(options)
    } catch (error) {
      if (!/timeout exceeded/.test(String(error))) throw error
    }
  }
}

/** As long as the service says that it cannot, with 503. */
async function served(ask: () => Promise<Answer>): Promise<Answer> {
  let answer = await ask()
  while (answer.status === 503) answer = await ask()
  return answer
}

const open = (database: { url: string; direct_url?: string }) =>
  openDatabases({
    config: configFor(database),
    secrets,
    mismatch: '',
    random: secureRandom,
    report: () => {},
    createsMissing: true,
  })

test('a start through a pooler without database.direct_url fails with a clear message and creates nothing', {
  skip,
}, async () => {
  await assert.rejects(open({ url: through(direct) }), {
    message:
      /^database\.url \(DATABASE_URL\): a pooler such as PgBouncer answers at 127\.0\.0\.1:\d+, .*database\.direct_url/,
  })
  await assert.rejects(
    open({ url: through(direct), direct_url: through(direct) }),
    /database\.direct_url.*pooler|pooler.*database\.direct_url/,
  )
  await withClient(direct, async (session) => {
    const { rows } = await session.query(`select to_regnamespace('service') as service`)
    assert.deepEqual(rows, [{ service: null }])
  })
  const other = await testDatabase({ isControl: true })
  const elsewhere = Object.assign(new URL(direct), { pathname: `/${other.name}` }).href
  await assert.rejects(
    open({ url: through(elsewhere), direct_url: direct }),
    /service\.installation|different databases/,
  )
})

test('the tables of a pooled logging client need its direct URL, which the message names', {
  skip,
}, async () => {
  const logging = await testDatabase()
  const prepare = (urls: { url: string; direct_url?: string }) =>
    openLogging(defaultConfig({ clients: { logging: urls } }), { logging: undefined })
  await assert.rejects(prepare({ url: through(logging.url) }), {
    message:
      /^clients\.logging\.url: a pooler such as PgBouncer answers at .* in clients\.logging\.direct_url$/,
  })
  await prepare({ url: through(logging.url), direct_url: logging.url })
  await withClient(logging.url, (session) => session.query('select from database_audit_log'))
})

test('sign-in, revocation in every process and mail work through PgBouncer in transaction mode', {
  skip,
}, async (t) => {
  const database = { url: through(direct), direct_url: direct }
  const config = configFor(database)
  const services = [] as Awaited<ReturnType<typeof startService>>[]
  t.after(async () => {
    for (const service of services) await service.stop()
  })
  const start = async () => {
    const databases = await open(database)
    assert.equal(databases.pooler?.url, database.url)
    const service = await started({ config, databases, secrets, adminKey: ADMIN_KEY, log })
    services.push(service)
    return { service, url: `http://127.0.0.1:${await service.listen()}` }
  }
  const [one, two] = [await start(), await start()]
  const [here, there] = [actor(one.url), actor(two.url)]
  const email = 'ada@example.com'
  const signedUp = await served(() =>
    here.post('/api/auth/sign-up/email', { name: 'Ada', email, password: PASSWORD }),
  )
  assert.equal(signedUp.status, 200, signedUp.text)
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      const { status, body } = await served(() =>
        there.post('/api/auth/sign-in/email', { email, password: PASSWORD }),
      )
      assert.equal(status, 200)
      const headers = { authorization: `Bearer ${body.token}` }
      assert.equal(
        (await served(() => here.get('/api/auth/get-session', { headers }))).body.user.email,
        email,
      )
      assert.equal((await served(() => here.post('/api/auth/sign-out', {}, { headers }))).status, 200)
      assert.equal((await served(() => there.get('/api/auth/get-session', { headers }))).status, 401)
    }),
  )
  await served(() => here.post('/api/auth/forget-password', { email, redirectTo: '/' }))
  assert.ok((await one.service.kernel.jobs.drain(one.service.handlers)) > 0)
  assert.equal((await readiness(here)).status, 200)
  // The search path and statement_timeout are also set through the pooler.
  const { rows } = await one.service.kernel.db
    .selectNoFrom((eb) => [
      eb.fn<string>('current_setting', [eb.val('search_path')]).as('path'),
      eb.fn<string>('current_setting', [eb.val('statement_timeout')]).as('timeout'),
    ])
    .execute()
    .then((rows) => ({ rows }))
  assert.deepEqual(rows, [{ path: 'pg_catalog, pg_temp', timeout: '30s' }])
})

test('limits count through a pooler that does not support prepared statements', { skip }, async (t) => {
  const database = { url: through(direct), direct_url: direct }
  const base = configFor(database)
  const config = { ...base, rate_limits: { ...base.rate_limits, enabled: true } }
  const databases = await open(database)
  assert.equal(databases.pooler?.prepares, false)
  const service = await started({
    config,
    databases,
    secrets,
    adminKey: ADMIN_KEY,
    log,
  })
  t.after(() => service.stop())
  const { post } = actor(`http://127.0.0.1:${await service.listen()}`)
  const asked = await Promise.all(
    Array.from({ length: 80 }, (_, index) =>
      served(() =>
        post('/api/auth/sign-in/email', { email: `nobody-${index % 2}@example.com`, password: PASSWORD }),
      ),
    ),
  )
  const counts = Object.groupBy(asked, ({ status }) => status)
  assert.deepEqual(Object.keys(counts), ['401', '429'], JSON.stringify(asked.map(({ text }) => text)))
})

test("session state of a caller's SQL does not leak through a pooler", { skip }, async (t) => {
  const databases = await open({ url: through(direct), direct_url: direct })
  const service = await started({
    config: configFor({ url: through(direct), direct_url: direct }),
    databases,
    secrets,
    adminKey: ADMIN_KEY,
    log,
  })
  t.after(() => service.stop())
  const admin = actor(`http://127.0.0.1:${await service.listen()}`, {
    apikey: ADMIN_KEY,
    'x-service-client': 'pooled',
  })
  const sql = (query: string) => served(() => admin.post('/query/sql', { driver: 'postgresql', query }))
  const left = [
    `set search_path = nowhere; set statement_timeout = '1ms'; select pg_advisory_lock(4711)`,
    'create temp table mine (id int); prepare kept as select 1; listen heard',
    `select pg_advisory_lock(4712), set_config('x.y', 'left', false); select 1 / 0`,
    'prepare failed as select 1; select nothing',
  ]
  for (let round = 0; round < 3; round++) for (const text of left) await sql(text)
  for (let round = 0; round < 12; round++) {
    const seen =
      await sql(`select current_setting('search_path') as path, current_setting('x.y', true) as own,
      (select count(*)::int from pg_prepared_statements where from_sql) as prepared, to_regclass('pg_temp.mine') as mine,
      (select count(*)::int from ${OWN_LOCKS} where locktype = 'advisory' and objid in (4711, 4712)) as locks,
      (select count(*)::int from pg_listening_channels()) as heard`)
    assert.equal(seen.status, 200, seen.text)
    const [{ own, ...rest }] = seen.body.data
    assert.deepEqual(rest, { path: '"$user", public', prepared: 0, mine: null, locks: 0, heard: 0 })
    assert.ok(own === null || own === '', own)
  }
  for (const text of ['select 1; commit; select 2', 'begin; select 1', 'rollback'])
    assert.equal((await sql(text)).status, 400, text)
})
