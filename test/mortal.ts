import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { type EmbeddedServer, startEmbedded } from '#kernel/db/embedded.ts'
import { provision } from '#kernel/db/provision.ts'
import { freePort } from './cluster.ts'
import { type Cleanup, newFolder, optionsFor, postmasterOf, query } from './embedded.ts'

/** A server of its own on a port, that can die, fall silent and come back. */
export type MortalServer = {
  /** For a role that may be a client's, in a database of its own. */
  readonly url: string
  /** `kill -9` of every process of it. */
  kill(): Promise<void>
  /** As `pg_ctl stop -m fast` and `-m immediate` do it. */
  stop(mode: keyof typeof STOPS): Promise<void>
  /** After `kill` or `stop`: on the same folder and port. */
  start(): Promise<void>
  /** Stops every process of it in its tracks, so that its port takes connections and says nothing. */
  freeze(): Promise<void>
  thaw(): Promise<void>
}

/** https://www.postgresql.org/docs/18/server-shutdown.html */
const STOPS = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const

const APP = { name: 'app', password: 'app' }

/** With the tables that `schema` makes. */
export async function mortalServer(t: Cleanup, schema: string): Promise<MortalServer> {
  const dir = await newFolder(t)
  const port = `${await freePort()}`
  const options = optionsFor(dir, { settings: { listen_addresses: '127.0.0.1', port } })
  let server: EmbeddedServer = await startEmbedded(options)
  await provision(server.superuserUrl, { roles: [APP], databases: [{ name: APP.name, owner: APP.name }] })
  const url = `postgres://${APP.name}:${APP.password}@127.0.0.1:${port}/${APP.name}`
  await query(url, schema)
  let frozen: readonly number[] = []
  const thaw = async () => {
    for (const pid of frozen) process.kill(pid, 'SIGCONT')
    frozen = []
  }
  // Before its folder's own end, which asks it to stop.
  t.after(thaw)
  return {
    url,
    async kill() {
      for (const pid of await processesOf(dir)) process.kill(pid, 'SIGKILL')
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
      for (const pid of frozen) process.kill(pid, 'SIGSTOP')
    },
    thaw,
  }
}

/** The one that makes the others comes first, so that none comes after. */
export async function processesOf(dir: string): Promise<readonly number[]> {
  const postmaster = await postmasterOf(dir)
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid='])
  const pairs = stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
  return [postmaster, ...pairs.flatMap(([pid = 0, parent]) => (parent === postmaster ? [pid] : []))]
}
