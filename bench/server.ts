import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { startEmbedded } from '#kernel/db/embedded.ts'
import { withClient } from '#test/database.ts'
import { freePort } from '#test/free-port.ts'
import { installedPrograms, startInstalledServer } from '#test/installed-postgres.ts'
import { createTemporaryFolder, removeFolder } from '#test/temporary-folder.ts'
import { parentOf } from './processor.ts'

/** The PostgreSQL server of a run, which all sides use. */
export type Server = {
  /** Logs in as a superuser, by TCP. */
  readonly url: string
  /** `PostgreSQL 15.14 by TCP, fsync on, synchronous_commit on`. */
  readonly describes: string
  /** Process id of the postmaster, whose descendants are all backends. */
  readonly pid: number
  stop(): Promise<void>
}

/** Room for the connections of every side; otherwise the defaults of PostgreSQL, durability included. */
const SETTINGS = { max_connections: '300' }

/** For processor times only: no disk, and no work of its own in the background. */
const WITHOUT_DISK = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
  ...SETTINGS,
}

/**
 * The server of TEST_DATABASE_URL, which must run on this machine; otherwise Debian's PostgreSQL if it is installed, on a disk, because its
 * pgbench and psql are the limits that we compare with; otherwise the one of the npm packages.
 */
export async function startServer(): Promise<Server> {
  const given = process.env.TEST_DATABASE_URL
  if (given) return describe(given, async () => {})
  const programs = await installedPrograms()
  if (programs === undefined) return startOwn(SETTINGS)
  const settings = Object.entries(SETTINGS).map(([name, value]) => `${name}=${value}`)
  const { superuserUrl, stop } = await startInstalledServer(programs, { settings, place: tmpdir() })
  return describe(superuserUrl, stop)
}

export const startServerWithoutDisk = (): Promise<Server> => startOwn(WITHOUT_DISK)

async function startOwn(settings: Readonly<Record<string, string>>): Promise<Server> {
  const [dir, port, password] = [
    await createTemporaryFolder(),
    `${await freePort()}`,
    randomBytes(16).toString('hex'),
  ]
  const server = await startEmbedded({
    dir,
    password,
    settings: { ...settings, listen_addresses: '127.0.0.1', port },
  })
  return describe(`postgres://postgres:${password}@127.0.0.1:${port}/postgres`, async () => {
    await server.stop()
    await removeFolder(dir)
  })
}

async function describe(url: string, stop: Server['stop']): Promise<Server> {
  return withClient(url, async (db) => {
    const { rows } = await db.query(
      `select pg_backend_pid() as pid, current_setting('server_version') as version, current_setting('fsync') as fsync,
         current_setting('synchronous_commit') as commit`,
    )
    const [{ pid, version, fsync, commit }] = rows as [Record<string, string>]
    const describes = `PostgreSQL ${version?.split(' ')[0]} by TCP, fsync ${fsync}, synchronous_commit ${commit}`
    return { url, describes, pid: parentOf(pid ?? ''), stop }
  })
}
