import { randomBytes } from 'node:crypto'
import path from 'node:path'
import pg from 'pg'
import { type EmbeddedServer, startEmbedded } from '#kernel/db/embedded.ts'
import { provision } from '#kernel/db/provision.ts'
import { type SharedCassandra, shareCassandra } from './cassandra/shared.ts'
import { dropDatabase, withClient } from './database.ts'
import { freePort } from './free-port.ts'
import { type Pooler, startPgBouncer } from './pgbouncer.ts'
import { createTemporaryFolder, removeAbandoned, removeFolder } from './temporary-folder.ts'

/** No data outlives the run, so durability is off. The timeout ends statements that hang. */
const SETTINGS = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_wal_size: '256MB',
  // Some files open a hundred.
  max_connections: '400',
  statement_timeout: '60s',
  // Autovacuum would start a process for each of hundreds of databases, which live for seconds.
  autovacuum: 'off',
  // The kernel copies the files of new databases, in half the processor time.
  file_copy_method: 'clone',
}

/** Module state, because node:test passes nothing from setup to teardown. */
const run: {
  serverUrl?: string
  roles?: readonly string[]
  server?: EmbeddedServer
  folder?: string
  pooler?: Pooler
  cassandra?: SharedCassandra
} = {}

/**
 * Sets up the PostgreSQL server of a test run, for `node --test --test-global-setup=test/cluster.ts`. TEST_DATABASE_URL names a server (with
 * a superuser, or a role with CREATEDB and CREATEROLE); otherwise an embedded server runs as long as the tests. Test processes read its
 * address from TEST_SERVER_URL. TEST_OWNER_URL logs in as the owner of client databases, TEST_CONTROL_URL as the owner of control
 * databases, a role that no client may use.
 */
export async function globalSetup(): Promise<void> {
  const env = process.env
  // Each test file is a process. The cache lets them share compiled modules.
  env.NODE_COMPILE_CACHE ??= path.resolve('node_modules/.cache/compiled')
  const serverUrl = env.TEST_DATABASE_URL || (await startServer())
  const owner = { name: `gatehouse_test_${randomBytes(4).toString('hex')}`, password: secret() }
  const control = { name: `${owner.name}_control`, password: secret() }
  await provision(serverUrl, { roles: [owner, control], databases: [] })
  for (const role of [owner, control]) {
    await simplifyLogin(serverUrl, role)
    await inheritRights(serverUrl, role.name)
  }
  Object.assign(run, { serverUrl, roles: [owner.name, control.name] })
  env.TEST_SERVER_URL = serverUrl
  env.TEST_OWNER_URL = loginUrl(serverUrl, owner)
  env.TEST_CONTROL_URL = loginUrl(serverUrl, control)
  run.cassandra = await shareCassandra()
  env.TEST_CASSANDRA_REQUESTS = run.cassandra.requestUrl
  // With TEST_POOLER, the tested services use PgBouncer; the tests themselves connect directly.
  if (env.TEST_POOLER !== undefined) {
    run.pooler = await startPgBouncer(serverUrl)
    env.TEST_POOLER_PORT = String(run.pooler.port)
  }
}

type Role = { readonly name: string; readonly password: string }

const loginUrl = (url: string, { name, password }: Role): string =>
  Object.assign(new URL(url), { username: name, password }).href

/** Also runs after failed tests. The leftovers of a killed run are removed by the next run. */
export async function globalTeardown(): Promise<void> {
  await run.pooler?.stop()
  await run.cassandra?.stop()
  if (run.server) await run.server.stop()
  else if (run.serverUrl && run.roles) await dropAll(run.serverUrl, run.roles)
  if (run.folder) await removeFolder(run.folder)
}

async function startServer(): Promise<string> {
  await removeAbandoned()
  run.folder = await createTemporaryFolder()
  const password = secret()
  const port = await freePort()
  // A TCP port in addition to the socket, because some tests connect by host name.
  const settings = { ...SETTINGS, listen_addresses: '127.0.0.1', port: `${port}` }
  run.server = await startEmbedded({ dir: run.folder, password, settings })
  const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`
  await simplifyLogin(url, { name: 'postgres', password })
  return url
}

/** One round of hashing instead of 4,096 for each of thousands of logins. Before PostgreSQL 16 the number is fixed. */
async function simplifyLogin(serverUrl: string, { name, password }: Role): Promise<void> {
  await withClient(serverUrl, async (client) => {
    const { rowCount } = await client.query(
      `select set_config('scram_iterations', '1', false) from pg_settings where name = 'scram_iterations'`,
    )
    if (rowCount)
      await client.query(`alter role ${pg.escapeIdentifier(name)} password ${pg.escapeLiteral(password)}`)
  })
}

/** Lets a non-superuser copy and drop the owner's databases. Before PostgreSQL 16, membership is enough. */
async function inheritRights(serverUrl: string, owner: string): Promise<void> {
  await withClient(serverUrl, async (client) => {
    const { rowCount } = await client.query(
      `select from pg_roles where rolname = current_user and not rolsuper
          and current_setting('server_version_num')::int >= 160000`,
    )
    if (rowCount) await client.query(`grant ${pg.escapeIdentifier(owner)} to current_user with inherit true`)
  })
}

/** Drops the run's databases, whose names begin with the name of its first role, and its roles. */
async function dropAll(serverUrl: string, roles: readonly string[]): Promise<void> {
  await withClient(serverUrl, async (client) => {
    const { rows } = await client.query<{ datname: string }>(
      `select datname from pg_database where starts_with(datname, $1 || '_')`,
      [roles[0]],
    )
    for (const { datname } of rows) await dropDatabase(client, datname)
    for (const role of roles) await client.query(`drop role ${pg.escapeIdentifier(role)}`)
  })
}

function secret(): string {
  return randomBytes(16).toString('hex')
}
