import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, policies } from 'cassandra-driver'
import { freePort } from '#test/cluster.ts'
import { temporaryFolder } from '#test/temporary.ts'
import { LIBRARIES } from './libraries.ts'

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
  await writeFile(path.join(folder, 'cassandra.yaml'), settings(folder, port, await freePort()))
  await writeFile(path.join(folder, 'logback.xml'), LOGGING)
  const java = [
    'java',
    ...flags(folder),
    '-cp',
    `${LIBRARIES}/*`,
    'org.apache.cassandra.service.CassandraDaemon',
  ]
  const [command = '', ...args] =
    process.platform === 'linux' ? ['setpriv', '--pdeathsig', 'KILL', ...java] : java
  const server = spawn(command, args, { cwd: folder, stdio: 'ignore' })
  const kill = () => void server.kill('SIGKILL')
  process.once('exit', kill)
  const stop = async () => {
    process.off('exit', kill)
    if (server.exitCode === null && server.signalCode === null) {
      kill()
      await once(server, 'exit')
    }
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await ready(server, folder, port)
  } catch (error) {
    await stop()
    throw error
  }
  // Every new server has this role.
  return { url: new URL(`scylladb://cassandra:cassandra@127.0.0.1:${port}`), stop }
}

async function ready(server: ChildProcess, folder: string, port: number): Promise<void> {
  const log = path.join(folder, 'log')
  for (const until = performance.now() + 120_000; performance.now() < until; await sleep(100)) {
    if (server.exitCode !== null) break
    const said = await readFile(log, 'utf8').catch(() => '')
    // The role is made just after the port is open.
    if (said.includes('Created default superuser role') && (await answers(port))) return
  }
  throw new Error(
    `Cassandra has not started:\n${(await readFile(log, 'utf8').catch(() => '')).slice(-2_000)}`,
  )
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const answer = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return answer
}

const settings = (folder: string, port: number, storagePort: number) => `
cluster_name: test
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - { class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{ seeds: "127.0.0.1:${storagePort}" }] }
listen_address: 127.0.0.1
storage_port: ${storagePort}
rpc_address: 127.0.0.1
native_transport_port: ${port}
authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
commitlog_sync: periodic
commitlog_sync_period: 10000ms
auto_snapshot: false
data_file_directories: [${folder}/data]
commitlog_directory: ${folder}/commitlog
saved_caches_directory: ${folder}/caches
hints_directory: ${folder}/hints
cdc_raw_directory: ${folder}/cdc
`

const LOGGING = `<configuration>
  <appender name="file" class="ch.qos.logback.core.FileAppender">
    <file>log</file><encoder><pattern>%-5level %msg%n%ex{3}</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="file"/></root>
</configuration>
`

/** Internals of Java that Cassandra reaches into; its own conf/jvm17-server.options has the same list. */
const OPENED = [
  ...['java.io', 'java.lang', 'java.lang.module', 'java.nio', 'java.util', 'java.util.concurrent'],
  ...['java.util.concurrent.atomic', 'sun.nio.ch', 'jdk.internal.loader', 'jdk.internal.math'],
  ...[
    'jdk.internal.misc',
    'jdk.internal.module',
    'jdk.internal.ref',
    'jdk.internal.reflect',
    'jdk.internal.util.jar',
  ],
]

const flags = (folder: string) => [
  '-Djdk.attach.allowAttachSelf=true',
  '-Djava.security.manager=allow',
  '--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED',
  '--add-exports=java.rmi/sun.rmi.server=ALL-UNNAMED',
  '--add-exports=java.management.rmi/com.sun.jmx.remote.internal.rmi=ALL-UNNAMED',
  '--add-exports=jdk.unsupported/sun.misc=ALL-UNNAMED',
  '--add-opens=jdk.management/com.sun.management.internal=ALL-UNNAMED',
  ...OPENED.map((name) => `--add-opens=java.base/${name}=ALL-UNNAMED`),
  '-Xms512m',
  '-Xmx512m',
  '-XX:+UseSerialGC',
  // It lives for a minute: code that is compiled fast beats code that runs fast.
  '-XX:TieredStopAtLevel=1',
  '-Dcassandra-foreground=yes',
  `-Dcassandra.config=file://${folder}/cassandra.yaml`,
  `-Dcassandra.storagedir=${folder}`,
  `-Dlogback.configurationFile=${folder}/logback.xml`,
  '-Dcassandra.skip_wait_for_gossip_to_settle=0',
  '-Dcassandra.ring_delay_ms=0',
  '-Dcassandra.superuser_setup_delay_ms=0',
  // Nothing here outlives the run, so nothing needs to reach the disk.
  '-Dcassandra.unsafesystem=true',
]
