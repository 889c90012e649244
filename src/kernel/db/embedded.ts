import { chmod, mkdir, realpath } from 'node:fs/promises'
import path from 'node:path'
import pg from 'pg'
import { findBinaries } from './embedded/binaries.ts'
import { EmbeddedServerError } from './embedded/error.ts'
import { lockFolder } from './embedded/folder-lock.ts'
import type { GuardedProcess } from './embedded/guarded-process.ts'
import { type Cluster, ensureData } from './embedded/initdb.ts'
import { launch } from './embedded/launch.ts'
import { logTail } from './embedded/log-file.ts'
import { removeLeftOver } from './embedded/pid-file.ts'
import { waitForPrevious } from './embedded/previous-server.ts'
import { makeSocketFolder, removeSocketFolder } from './embedded/socket.ts'
import { findSystemUser, giveFolder } from './embedded/system-user.ts'
import { onConnection } from './guarded-client.ts'

export type EmbeddedServer = {
  /** A connection string over the server's Unix socket. */
  url(role: string, password: string, database: string): string
  readonly superuserUrl: string
  /** As `18.4`. */
  readonly version: string
  /**
   * Fast shutdown: open transactions are rolled back. A server that has not ended within that many milliseconds is killed with all
   * of its processes, which loses no committed data. Resolves when it has ended.
   */
  stop(within?: number): Promise<void>
  /** Resolves when the server ends without a `stop`. */
  readonly died: Promise<{ code: number | null; log: string }>
}

export type EmbeddedOptions = {
  /** The server's own folder; created if missing, with mode 0700. */
  readonly dir: string
  /** The superuser's password, which stays the same as long as the folder exists. */
  readonly password: string
  /** Run-time parameters of PostgreSQL, which override ours. */
  readonly settings?: Readonly<Record<string, string>>
  /** Called with a short word for each step that takes time. */
  readonly report?: (step: string) => void
  /** Aborts the start; it does not stop a server that has started. */
  readonly signal?: AbortSignal | undefined
}

/** Starts PostgreSQL on its folder. The server ends with this process, also after SIGKILL. */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const binaries = await findBinaries()
  const folder = await openFolder(options.dir)
  const user = await findSystemUser([folder, binaries.postgres])
  const { report = () => {}, signal, settings = {}, password } = options
  const lock = await lockFolder(folder, report, signal)
  try {
    await waitForPrevious(folder, report, signal)
    await giveFolder(folder, user)
    // By its descriptor: the owner of the folder could have replaced the file of that name.
    if (process.getuid?.() === 0) await lock.chown(user.uid, user.gid)
    const isDurable = settings.fsync !== 'off'
    const cluster = { folder, user, binaries, lock, password, isDurable, report, signal }
    await ensureData(cluster)
    return await start(cluster, settings)
  } catch (error) {
    await lock.close()
    throw error
  }
}

async function openFolder(dir: string): Promise<string> {
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const folder = await realpath(dir)
  // The path is one line of PostgreSQL's lock file.
  if (/\p{Cc}/u.test(folder))
    throw new EmbeddedServerError('The name of the data folder holds a control character.')
  await chmod(folder, 0o700)
  return folder
}

async function start(cluster: Cluster, settings: Readonly<Record<string, string>>): Promise<EmbeddedServer> {
  const { folder, password } = cluster
  const port = settings.port ?? '5432'
  const socket = await makeSocketFolder(folder, port, cluster.user)
  try {
    await removeLeftOver(path.join(socket, `.s.PGSQL.${port}.lock`))
    const running = await launch(cluster, { ...defaults(socket), ...settings })
    const url = urlsOf(socket, port)
    const superuserUrl = url('postgres', password, 'postgres')
    const version = await logIn(superuserUrl, cluster, running)
    return { url, superuserUrl, version, ...endsOf(running, cluster) }
  } catch (error) {
    await removeSocketFolder(folder)
    throw error
  }
}

function defaults(socket: string): Record<string, string> {
  return {
    listen_addresses: '',
    // A list with quoted items.
    unix_socket_directories: `"${socket.replaceAll('"', '""')}"`,
    unix_socket_permissions: '0700',
    // A pool for each of three databases in each of a few workers. An unused slot costs 50 kB.
    max_connections: '200',
    shared_buffers: '128MB',
    timezone: 'UTC',
    log_timezone: 'UTC',
    // Only messages about the server. Errors of statements go to the client; here they would fill the disk, and contain data.
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
  }
}

/** With the socket's folder percent-encoded as the host, which `pg`, libpq and `new URL` all accept. */
export function urlsOf(socket: string, port: string): EmbeddedServer['url'] {
  const host = encodeURIComponent(socket) + (port === '5432' ? '' : `:${port}`)
  return (role, password, database) =>
    `postgres://${encodeURIComponent(role)}:${encodeURIComponent(password)}@${host}/${encodeURIComponent(database)}`
}

/** Checks the password, and returns the version. */
async function logIn(url: string, cluster: Cluster, running: GuardedProcess): Promise<string> {
  try {
    return await onConnection({ url, name: 'start' }, async (client) => {
      const { rows } = await client.query<{ server_version: string }>('show server_version')
      return rows[0]?.server_version ?? ''
    })
  } catch (error) {
    await running.end(STOP_MS)
    if (!(error instanceof pg.DatabaseError) || error.code !== '28P01') throw error
    throw new EmbeddedServerError(
      `The database folder ${cluster.folder} was created with another superuser password than the one in postgres-password beside it.`,
    )
  }
}

/** For a stop without a deadline: the checkpoint on a slow disk. */
const STOP_MS = 60_000

function endsOf(running: GuardedProcess, { folder, lock }: Cluster): Pick<EmbeddedServer, 'stop' | 'died'> {
  let isAsked = false
  running.release()
  const ended = running.exited.then(async ({ code }) => {
    const log = isAsked ? '' : await logTail(path.join(folder, 'server.log'))
    await removeSocketFolder(folder)
    // Last, since the next server may use the folder then. Children that outlive their server hold the lock a little longer.
    await lock.close()
    return { code, log }
  })
  return {
    died: new Promise((resolve) => {
      ended.then((end) => !isAsked && resolve(end))
    }),
    async stop(within = STOP_MS) {
      isAsked = true
      running.hold()
      await running.end(within)
      await ended
    },
  }
}
