import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { LIBRARIES } from './libraries.ts'

export type NodeOptions = {
  /** Folder of its files, which are kept for the next start. */
  readonly folder: string
  readonly address: string
  readonly port: number
  /** Must be the same for all nodes of a ring. */
  readonly storagePort: number
  /** Address of the seed node, by default its own. */
  readonly seed?: string
  /** Additional lines of cassandra.yaml. */
  readonly settings: Readonly<Record<string, string | number>>
  readonly flags: readonly string[]
  /** A log message that a ready node has written, in addition to accepting connections. */
  readonly readyAt: string
}

export type CassandraNode = { readonly process: ChildProcess; kill(): Promise<void> }

/** Starts one node of Apache Cassandra and waits until it accepts statements. It is killed when this process exits, even by a crash. */
export async function startNode(options: NodeOptions): Promise<CassandraNode> {
  const { folder } = options
  await writeFile(path.join(folder, 'cassandra.yaml'), settingsOf(options))
  await writeFile(path.join(folder, 'logback.xml'), LOGGING)
  await rm(path.join(folder, 'log'), { force: true })
  const java = [
    'java',
    ...flagsOf(options),
    '-cp',
    `${LIBRARIES}/*`,
    'org.apache.cassandra.service.CassandraDaemon',
  ]
  const [command = '', ...args] =
    process.platform === 'linux' ? ['setpriv', '--pdeathsig', 'KILL', ...java] : java
  const server = spawn(command, args, { cwd: folder, stdio: 'ignore' })
  const end = () => void server.kill('SIGKILL')
  process.once('exit', end)
  const kill = async () => {
    process.off('exit', end)
    if (server.exitCode !== null || server.signalCode !== null) return
    end()
    await once(server, 'exit')
  }
  try {
    await ready(server, options)
  } catch (error) {
    await kill()
    throw error
  }
  return { process: server, kill }
}

async function ready(server: ChildProcess, { folder, address, port, readyAt }: NodeOptions): Promise<void> {
  const log = path.join(folder, 'log')
  for (const until = performance.now() + 180_000; performance.now() < until; await sleep(100)) {
    if (server.exitCode !== null) break
    const lines = await readFile(log, 'utf8').catch(() => '')
    if (lines.includes(readyAt) && (await answers(port, address))) return
  }
  throw new Error(`Cassandra did not start:\n${(await readFile(log, 'utf8').catch(() => '')).slice(-2_000)}`)
}

async function answers(port: number, address: string): Promise<boolean> {
  const socket = connect(port, address)
  const answer = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return answer
}

const settingsOf = ({ folder, address, port, storagePort, seed = address, settings }: NodeOptions) => `
cluster_name: test
num_tokens: 1
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - { class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{ seeds: "${seed}:${storagePort}" }] }
listen_address: ${address}
storage_port: ${storagePort}
rpc_address: ${address}
native_transport_port: ${port}
commitlog_sync: periodic
commitlog_sync_period: 10000ms
auto_snapshot: false
data_file_directories: [${folder}/data]
commitlog_directory: ${folder}/commitlog
saved_caches_directory: ${folder}/caches
hints_directory: ${folder}/hints
cdc_raw_directory: ${folder}/cdc
${Object.entries(settings)
  .map(([name, value]) => `${name}: ${value}`)
  .join('\n')}
`

const LOGGING = `<configuration>
  <appender name="file" class="ch.qos.logback.core.FileAppender">
    <file>log</file><encoder><pattern>%-5level %msg%n%ex{3}</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="file"/></root>
</configuration>
`

/** Internal Java packages that Cassandra uses, as listed in its conf/jvm17-server.options. */
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

const flagsOf = ({ folder, flags }: NodeOptions) => [
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
  // The node runs for a minute, so compile time matters more than the speed of the code.
  '-XX:TieredStopAtLevel=1',
  '-Dcassandra-foreground=yes',
  `-Dcassandra.config=file://${folder}/cassandra.yaml`,
  `-Dcassandra.storagedir=${folder}`,
  `-Dlogback.configurationFile=${folder}/logback.xml`,
  '-Dcassandra.skip_wait_for_gossip_to_settle=0',
  '-Dcassandra.ring_delay_ms=0',
  '-Dcassandra.superuser_setup_delay_ms=0',
  ...flags,
]
