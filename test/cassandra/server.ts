import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { Client, policies } from 'cassandra-driver'
import { freePort } from '#test/free-port.ts'
import { createTemporaryFolder, removeFolder } from '#test/temporary-folder.ts'
import { LIBRARIES } from './libraries.ts'
import { startNode } from './node.ts'
import { requestCassandra } from './shared.ts'

const externalUrl = process.env.TEST_CASSANDRA_URL

/** The `skip` option for tests with Cassandra: the reason if it is missing, otherwise false. `npm test` itself needs only Node. */
export const missing: string | false = !externalUrl && missingReason()

function missingReason(): string | false {
  if (!existsSync(LIBRARIES))
    return 'needs Apache Cassandra: `npm run cassandra` downloads it (with Java 17 and Maven)'
  const { stderr } = spawnSync('java', ['-version'], { encoding: 'utf8' })
  return /version "(?:11|17)\b/.test(stderr ?? '') ? false : 'needs Java 11 or 17'
}

export type Cassandra = {
  /** URL of the server, with a superuser and without a keyspace. */
  readonly url: URL
  stop(): Promise<void>
}

export type Keyspace = {
  readonly url: string
  readonly name: string
  /** Runs statements as the superuser, in the keyspace. */
  run(...statements: string[]): Promise<void>
  /** Runs a query as the superuser, for example on a system table. */
  rows(statement: string): Promise<readonly object[]>
  stop(): Promise<void>
}

/** Creates a keyspace, on the server in TEST_CASSANDRA_URL (with a superuser) or on the server of this run. */
export async function testKeyspace(): Promise<Keyspace> {
  const server = externalUrl ? new URL(externalUrl) : await requestCassandra()
  const { hostname, port, username, password } = server
  const name = `test_${randomBytes(6).toString('hex')}`
  const client = new Client({
    contactPoints: hostname.split(','),
    protocolOptions: { port: Number(port || 9042) },
    credentials: { username, password },
    policies: { loadBalancing: new policies.loadBalancing.RoundRobinPolicy() },
  })
  const replication = `{ 'class': 'SimpleStrategy', 'replication_factor': 1 }`
  await client.execute(`create keyspace ${name} with replication = ${replication}`)
  await client.execute(`use ${name}`)
  const url = new URL(server)
  url.pathname = `/${name}`
  return {
    name,
    url: url.href,
    async run(...statements) {
      for (const statement of statements) await client.execute(statement)
    },
    rows: async (statement) => (await client.execute(statement)).rows,
    async stop() {
      await client.execute(`drop keyspace ${name}`)
      await client.shutdown()
    },
  }
}

/**
 * Starts a server with one node on the loopback address, in 9 s and 800 MB: with passwords and permissions, without waiting for other nodes.
 * It is killed when this process exits, even by a crash.
 */
export async function startCassandra(): Promise<Cassandra> {
  const folder = await createTemporaryFolder()
  const port = await freePort()
  const node = await startNode({
    folder,
    address: '127.0.0.1',
    port,
    storagePort: await freePort(),
    settings: {
      authenticator: 'PasswordAuthenticator',
      authorizer: 'CassandraAuthorizer',
      // A busy machine may take longer than the defaults of 10 and 12 s to count ten thousand rows.
      range_request_timeout: '60s',
      native_transport_timeout: '60s',
    },
    // No data outlives the run, so durability is off.
    flags: ['-Dcassandra.unsafesystem=true'],
    // A new server creates this role just after it opens the port.
    readyAt: 'Created default superuser role',
  }).catch(async (error: unknown) => {
    await removeFolder(folder)
    throw error
  })
  const stop = async () => {
    await node.kill()
    await removeFolder(folder)
  }
  return { url: new URL(`scylladb://cassandra:cassandra@127.0.0.1:${port}`), stop }
}
