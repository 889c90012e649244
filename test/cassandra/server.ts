import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Client, policies } from 'cassandra-driver'
import { freePort } from '#test/cluster.ts'
import { temporaryFolder } from '#test/temporary.ts'
import { LIBRARIES } from './libraries.ts'
import { startNode } from './node.ts'

const theirs = process.env.TEST_CASSANDRA_URL

/** Why there is no Cassandra here: what `test(…, { skip })` takes. `npm test` itself needs only Node. */
export const missing: string | false = !theirs && why()

function why(): string | false {
  if (!existsSync(LIBRARIES))
    return 'needs Apache Cassandra: `npm run cassandra` fetches it (with Java 17 and Maven)'
  const { stderr } = spawnSync('java', ['-version'], { encoding: 'utf8' })
  return /version "(?:11|17)\b/.test(stderr ?? '') ? false : 'needs Java 11 or 17'
}

export type Cassandra = {
  /** As a superuser; its keyspace is that of a test. */
  readonly url: URL
  stop(): Promise<void>
}

export type Keyspace = {
  readonly url: string
  readonly name: string
  /** As the superuser, in the keyspace. */
  run(...statements: string[]): Promise<void>
  /** Of a table of the server. */
  rows(statement: string): Promise<readonly object[]>
  stop(): Promise<void>
}

/** A keyspace of its own: on the server that TEST_CASSANDRA_URL names (as a superuser), else on one that lives as long as this. */
export async function testKeyspace(): Promise<Keyspace> {
  const server = theirs ? { url: new URL(theirs), stop: async () => {} } : await startCassandra()
  const { hostname, port, username, password } = server.url
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
  const url = new URL(server.url)
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
      await server.stop()
    },
  }
}

/**
 * A real server of one node on the loopback, in 9 s and 800 MB: with passwords and rights, without waiting for other nodes.
 * It ends with this process, however that ends.
 */
async function startCassandra(): Promise<Cassandra> {
  const folder = await temporaryFolder()
  const port = await freePort()
  const node = await startNode({
    folder,
    address: '127.0.0.1',
    port,
    storagePort: await freePort(),
    settings: {
      authenticator: 'PasswordAuthenticator',
      authorizer: 'CassandraAuthorizer',
    },
    // Nothing here outlives the run, so nothing needs to reach the disk.
    flags: ['-Dcassandra.unsafesystem=true'],
    // Every new server has this role; it is made just after the port is open.
    readyAt: 'Created default superuser role',
  }).catch(async (error: unknown) => {
    await rm(folder, { recursive: true, force: true })
    throw error
  })
  const stop = async () => {
    await node.kill()
    await rm(folder, { recursive: true, force: true })
  }
  return { url: new URL(`scylladb://cassandra:cassandra@127.0.0.1:${port}`), stop }
}
