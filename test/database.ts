import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

export type TestDatabase = {
  /** Logs in as the role that owns the database: no superuser, as in production. */
  readonly url: string
  readonly name: string
  drop(): Promise<void>
}

/** A database of its own on the run's server; 20 ms from a template. Dropped by `drop()`, or at the end of the run. */
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

/**
 * Builds a template once per run, whichever test process asks first, and answers its name for
 * `testDatabase({ template })`. `build` gets the owner's URL and must close its connections.
 */
export async function templateDatabase(
  name: string,
  build: (url: string) => Promise<void>,
  isControl = false,
): Promise<string> {
  const run = testRun(isControl)
  const template = `${run.name}_template_${name}`
  await withClient(run.serverUrl, async (client) => {
    await client.query('select pg_advisory_lock(hashtextextended($1, 0))', [template])
    const { rowCount } = await client.query('select from pg_database where datname = $1', [template])
    if (rowCount) return
    // Built under another name, so that a build that failed half-way is never taken for a template.
    const building = `${template}_building`
    await dropDatabase(client, building)
    await create(client, run, building)
    await build(onDatabase(run.ownerUrl, building))
    await client.query(`alter database ${id(building)} rename to ${id(template)}`)
  })
  return template
}

/** The run's server, for tests that make roles or databases themselves: may do both, and is the superuser of an embedded one. */
export function testServerUrl(): string {
  return testRun().serverUrl
}

type TestRun = { serverUrl: string; ownerUrl: string; owner: string; name: string }

/** Whether the services of this run reach their databases through PgBouncer. */
export const hasPooler = (): boolean => process.env.TEST_POOLER_PORT !== undefined

/** The same database through the run's PgBouncer, where it has one (TEST_POOLER). */
export function pooled(url: string): string {
  const { TEST_POOLER_PORT: port, TEST_SERVER_URL: server = '' } = process.env
  // A server of a test's own, or none at all, has no pooler in front.
  const isOurs = URL.canParse(url) && new URL(url).host === new URL(server).host
  return port === undefined || !isOurs
    ? url
    : Object.assign(new URL(url), { hostname: '127.0.0.1', port }).href
}

/** As if the database's server had gone: ends every connection to it, and lets no new one in. */
export async function shutDatabase(url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  await withClient(testRun().serverUrl, async (client) => {
    await client.query(`alter database ${id(name)} with allow_connections false`)
    await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
  })
}

/** What test/cluster.ts put into the environment of every test process. */
function testRun(isControl = false): TestRun {
  const { TEST_SERVER_URL: serverUrl, TEST_OWNER_URL: usual, TEST_CONTROL_URL: control } = process.env
  const ownerUrl = isControl ? control : usual
  if (!serverUrl || !ownerUrl || !usual) {
    throw new Error(
      'No test server: run `node --test --test-global-setup=test/cluster.ts FILE`, which starts one for the run.',
    )
  }
  // All of the run are named after the one role, which the end of the run looks for.
  return { serverUrl, ownerUrl, owner: new URL(ownerUrl).username, name: new URL(usual).username }
}

async function create(client: pg.Client, run: TestRun, name: string, template = 'template0') {
  const { rows } = await client.query<{ fsync: string }>('show fsync')
  // Half the time, unless every file has to reach the disk; and then log records are quicker.
  const strategy = rows[0]?.fsync === 'off' ? 'file_copy' : 'wal_log'
  await client.query(
    `create database ${id(name)} owner ${id(run.owner)} template ${id(template)} encoding 'UTF8' strategy ${strategy}`,
  )
}

/** Tries again while the server's own vacuum is in it, whose process only superusers may end. */
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
