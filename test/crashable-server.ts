import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { type EmbeddedServer, startEmbedded } from '#kernel/db/embedded.ts'
import { provision } from '#kernel/db/provision.ts'
import { type Cleanup, newFolder, optionsFor, PASSWORD, postmasterOf, query } from './embedded.ts'
import { freePort } from './free-port.ts'

/** A PostgreSQL server on its own port that tests can kill, freeze and restart. */
export type CrashableServer = {
  /** URL of a separate database with a role that a client may use. */
  readonly url: string
  readonly superuserUrl: string
  /** Sends SIGKILL to all processes of the server. */
  kill(): Promise<void>
  /** Stops it like `pg_ctl stop -m fast` or `-m immediate`. */
  stop(mode: keyof typeof STOPS): Promise<void>
  /** Restarts it on the same folder and port after `kill` or `stop`. */
  start(): Promise<void>
  /** Suspends all processes, so that the port accepts connections but nothing responds. */
  freeze(): Promise<void>
  thaw(): Promise<void>
}

/** https://www.postgresql.org/docs/18/server-shutdown.html */
const STOPS = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const

const APP = { name: 'app', password: 'app' }

/** Starts a server and runs `schema` on its database. */
export async function startCrashableServer(
  t: Cleanup,
  schema: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<CrashableServer> {
  const dir = await newFolder(t)
  const port = `${await freePort()}`
  const options = optionsFor(dir, { settings: { listen_addresses: '127.0.0.1', port, ...settings } })
  let server: EmbeddedServer = await startEmbedded(options)
  await provision(server.superuserUrl, { roles: [APP], databases: [{ name: APP.name, owner: APP.name }] })
  const url = `postgres://${APP.name}:${APP.password}@127.0.0.1:${port}/${APP.name}`
  await query(url, schema)
  let frozen: readonly number[] = []
  const thaw = async () => {
    for (const pid of frozen) send(pid, 'SIGCONT')
    frozen = []
  }
  // Resume it before the folder's cleanup, which asks the server to stop.
  t.after(thaw)
  return {
    url,
    superuserUrl: `postgres://postgres:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}/postgres`,
    async kill() {
      for (const pid of await processesOf(dir)) send(pid, 'SIGKILL')
      await server.died
    },
    async stop(mode) {
      process.kill(await postmasterOf(dir), STOPS[mode])
      await server.died
    },
    async start() {
      server = await startEmbedded(options)
    },
    async freeze() {
      frozen = await processesOf(dir)
      for (const pid of frozen) send(pid, 'SIGSTOP')
    },
    thaw,
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // The process of a connection may have ended since they were listed.
  }
}

/** Process ids of the server. The postmaster comes first, so that it cannot fork more after its children are killed. */
export async function processesOf(dir: string): Promise<readonly number[]> {
  const postmaster = await postmasterOf(dir)
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid='])
  const pairs = stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
  return [postmaster, ...pairs.flatMap(([pid = 0, parent]) => (parent === postmaster ? [pid] : []))]
}
