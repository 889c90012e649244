import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { builtInNames } from '#kernel/db/built-in-databases.ts'

export type TestDatabase = {
  /** Logs in as the role that owns the database. As in production, it is not a superuser. */
  readonly url: string
  readonly name: string
  drop(): Promise<void>
}

/** Creates a database on the run's server, in 20 ms from a template. It is dropped by `drop()` or at the end of the run. */
export async function testDatabase(
  options: { template?: string; isControl?: boolean } = {},
): Promise<TestDatabase> {
  const run = testRun(options.isControl)
  const name = `${run.name}_${randomBytes(6).toString('hex')}`
  await withClient(run.serverUrl, (client) => create(client, run, name, options.template))
  return {
    name,
    url: onDatabase(run.ownerUrl, name),
    drop: () => withClient(run.serverUrl, (client) => dropDatabase(client, name)),
  }
}

/** By name: the templates that this process has created or found. */
const templates = new Map<string, Promise<string>>()

/**
 * Returns the name of a template database for `testDatabase({ template })`. The first test process that calls it creates the template,
 * once per run. `build` gets the owner's URL and must close its connections.
 */
export function createTemplateDatabase(
  name: string,
  build: (url: string) => Promise<void>,
  isControl = false,
): Promise<string> {
  const run = testRun(isControl)
  const template = `${run.name}_template_${name}`
  const known = templates.get(template) ?? findOrCreateTemplate(run, template, build)
  templates.set(template, known)
  return known
}

async function findOrCreateTemplate(
  run: TestRun,
  template: string,
  build: (url: string) => Promise<void>,
): Promise<string> {
  await withClient(run.serverUrl, async (client) => {
    await client.query('select pg_advisory_lock(hashtextextended($1, 0))', [template])
    const { rowCount } = await client.query('select from pg_database where datname = $1', [template])
    if (rowCount) return
    // Use another name during the build, so that a failed build is never used as a template.
    const building = `${template}_building`
    await dropDatabase(client, building)
    await create(client, run, building)
    await build(onDatabase(run.ownerUrl, building))
    await client.query(`alter database ${id(building)} rename to ${id(template)}`)
  })
  return template
}

/**
 * For `from`: what the sessions of this database hold or wait for. Other databases of the server belong to other tests. A lock on a
 * transaction names no database, but its session has locks that do. (The list of sessions would be frozen during a transaction.)
 */
export const OWN_LOCKS =
  '(select * from pg_locks where pid in (select pid from pg_locks join pg_database d on d.oid = database where datname = current_database())) as lock'

/** URL of the run's server, for tests that create roles or databases. On an embedded server it logs in as a superuser. */
export function testServerUrl(): string {
  return testRun().serverUrl
}

type TestRun = { serverUrl: string; ownerUrl: string; owner: string; name: string }

/** Whether the tested services of this run use PgBouncer. */
export const hasPooler = (): boolean => process.env.TEST_POOLER_PORT !== undefined

/** The URL of the same database through the run's PgBouncer, if there is one (TEST_POOLER). */
export function pooled(url: string): string {
  const { TEST_POOLER_PORT: port, TEST_SERVER_URL: server = '' } = process.env
  // A server that a test started itself has no pooler, nor has an invalid URL.
  const isOurs = URL.canParse(url) && new URL(url).host === new URL(server).host
  return port === undefined || !isOurs
    ? url
    : Object.assign(new URL(url), { hostname: '127.0.0.1', port }).href
}

/** Simulates the loss of a database: terminates all connections to it and rejects new ones. */
export async function shutDatabase(url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  await withClient(testRun().serverUrl, async (client) => {
    await client.query(`alter database ${id(name)} with allow_connections false`)
    await client.query('select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = $1', [
      name,
    ])
  })
}

/** Reads the variables that test/cluster.ts sets for every test process. */
function testRun(isControl = false): TestRun {
  const { TEST_SERVER_URL: serverUrl, TEST_OWNER_URL: usual, TEST_CONTROL_URL: control } = process.env
  const ownerUrl = isControl ? control : usual
  if (!serverUrl || !ownerUrl || !usual) {
    throw new Error(
      'No test server: run `node --test --test-global-setup=test/cluster.ts FILE`, which starts one for the run.',
    )
  }
  // All databases of a run begin with the name of one role, by which the teardown finds them.
  return { serverUrl, ownerUrl, owner: new URL(ownerUrl).username, name: new URL(usual).username }
}

async function create(client: pg.Client, run: TestRun, name: string, template = 'template0') {
  const { rows } = await client.query<{ fsync: string }>('show fsync')
  // File copies take half the time if fsync is off. With fsync on, log records are faster.
  const strategy = rows[0]?.fsync === 'off' ? 'file_copy' : 'wal_log'
  await client.query(
    `create database ${id(name)} owner ${id(run.owner)} template ${id(template)} encoding 'UTF8' strategy ${strategy}`,
  )
}

/** Retries while autovacuum works in the database: only superusers may terminate it. */
export async function dropDatabase(client: pg.Client, name: string): Promise<void> {
  for (let tries = 50; ; tries--) {
    try {
      await client.query(`drop database if exists ${id(name)} with (force)`)
      return
    } catch (error) {
      if (tries === 0 || !(error instanceof pg.DatabaseError && error.code === '42501')) throw error
      await sleep(100)
    }
  }
}

/** Drops control databases with their built-in databases, and then all built-in roles: a role can own tables in several. */
export async function dropInstallations(...controls: readonly string[]): Promise<void> {
  const all = controls.map((control) => ({ control, names: builtInNames(control) }))
  await withClient(testServerUrl(), async (client) => {
    for (const { control, names } of all)
      for (const name of [control, names.default, names.logging]) await dropDatabase(client, name)
    for (const role of all.flatMap(({ names }) => Object.values(names)))
      await client.query(`drop role if exists ${id(role)}`)
  })
}

function onDatabase(url: string, database: string): string {
  const changed = new URL(url)
  changed.pathname = `/${database}`
  return changed.href
}

export async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

const id = pg.escapeIdentifier
