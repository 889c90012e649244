import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import path from 'node:path'
import pg from 'pg'
import { type EmbeddedServer, startEmbedded } from '#kernel/db/embedded.ts'
import { provision } from '#kernel/db/provision.ts'
import { dropDatabase, withClient } from './database.ts'
import { removeAbandoned, temporaryFolder } from './temporary.ts'

/** Nothing here outlives the run, so nothing needs to reach the disk; and nothing that waits for ever is worth waiting for. */
const SETTINGS = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_wal_size: '256MB',
  statement_timeout: '60s',
}

/** Module state, because node:test hands nothing from the setup to the teardown. */
const run: { serverUrl?: string; owner?: string; server?: EmbeddedServer; folder?: string } = {}

/**
 * The run's server, for `node --test --test-global-setup=test/cluster.ts`: the one that TEST_DATABASE_URL names (as a
 * superuser, or a role with CREATEDB and CREATEROLE), else an embedded one that lives as long as the run. Test
 * processes find it in TEST_SERVER_URL; TEST_OWNER_URL is the role that owns the test databases.
 */
export async function globalSetup(): Promise<void> {
  const env = process.env
  // Each test file is a process; with it they compile nothing that another one has compiled.
  env.NODE_COMPILE_CACHE ??= path.resolve('node_modules/.cache/compiled')
  const serverUrl = env.TEST_DATABASE_URL || (await startServer())
  const owner = { name: `gatehouse_test_${randomBytes(4).toString('hex')}`, password: secret() }
  await provision(serverUrl, { roles: [owner], databases: [] })
  await inheritRights(serverUrl, owner.name)
  Object.assign(run, { serverUrl, owner: owner.name })
  env.TEST_SERVER_URL = serverUrl
  env.TEST_OWNER_URL = Object.assign(new URL(serverUrl), {
    username: owner.name,
    password: owner.password,
  }).href
}

/** Runs after failed tests as well; what a killed run leaves, the next one removes. */
export async function globalTeardown(): Promise<void> {
  if (run.server) await run.server.stop()
  else if (run.serverUrl && run.owner) await dropAll(run.serverUrl, run.owner)
  if (run.folder) await rm(run.folder, { recursive: true, force: true })
}

async function startServer(): Promise<string> {
  await removeAbandoned()
  run.folder = await temporaryFolder()
  const password = secret()
  const port = await freePort()
  // A TCP port besides the socket, because some tests reach the server by host name.
  const settings = { ...SETTINGS, listen_addresses: '127.0.0.1', port: `${port}` }
  run.server = await startEmbedded({ dir: run.folder, password, settings })
  return `postgres://postgres:${password}@127.0.0.1:${port}/postgres`
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  // An object for every server that listens on a port.
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Lets a server's role that is no superuser copy and drop what the owner owns; before 16 membership is enough. */
async function inheritRights(serverUrl: string, owner: string): Promise<void> {
  await withClient(serverUrl, async (client) => {
    const { rowCount } = await client.query(
      `select from pg_roles where rolname = current_user and not rolsuper
          and current_setting('server_version_num')::int >= 160000`,
    )
    if (rowCount) await client.query(`grant ${pg.escapeIdentifier(owner)} to current_user with inherit true`)
  })
}

/** The run's databases are named after its role. */
async function dropAll(serverUrl: string, owner: string): Promise<void> {
  await withClient(serverUrl, async (client) => {
    const { rows } = await client.query<{ datname: string }>(
      `select datname from pg_database where starts_with(datname, $1 || '_')`,
      [owner],
    )
    for (const { datname } of rows) await dropDatabase(client, datname)
    await client.query(`drop role ${pg.escapeIdentifier(owner)}`)
  })
}

function secret(): string {
  return randomBytes(16).toString('hex')
}
