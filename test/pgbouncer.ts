import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { freePort } from './free-port.ts'
import { hasExited } from './processes.ts'
import { removeFolder } from './temporary-folder.ts'

const PROGRAM = process.env.PGBOUNCER ?? '/usr/sbin/pgbouncer'

/** The `skip` option for tests with a real PgBouncer: the reason if it is missing, otherwise false. */
export const WITHOUT_PGBOUNCER = existsSync(PROGRAM) ? false : `there is no ${PROGRAM}`

export type Pooler = {
  readonly port: number
  stop(): Promise<void>
}

/**
 * Starts PgBouncer in transaction mode in front of a server, for all of its logins. It uses few sessions in turn, one per transaction, so
 * that code which relies on keeping a session fails.
 */
export async function startPgBouncer(superuserUrl: string): Promise<Pooler> {
  const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-pgbouncer-'))
  const port = await freePort()
  const server = new URL(superuserUrl)
  await writeFile(
    path.join(folder, 'users'),
    `"${server.username}" "${decodeURIComponent(server.password)}"\n`,
  )
  const settings = [
    '[databases]',
    `* = host=${server.hostname} port=${server.port || 5432}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = scram-sha-256',
    `auth_file = ${path.join(folder, 'users')}`,
    `auth_user = ${server.username}`,
    'auth_query = select usename, passwd from pg_catalog.pg_shadow where usename = $1',
    'pool_mode = transaction',
    'default_pool_size = 4',
    'server_round_robin = 1',
    'max_client_conn = 500',
    'server_idle_timeout = 5',
  ]
  await writeFile(path.join(folder, 'pgbouncer.ini'), `${settings.join('\n')}\n`)
  for (const file of ['users', 'pgbouncer.ini']) await chmod(path.join(folder, file), 0o644)
  await chmod(folder, 0o755)
  // PgBouncer refuses to run as root.
  const asUser = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const child = spawn(PROGRAM, ['-q', ...asUser, path.join(folder, 'pgbouncer.ini')], {
    stdio: ['ignore', 'ignore', process.env.PGBOUNCER_LOG ? 'inherit' : 'ignore'],
  })
  await answers(child, Object.assign(server, { hostname: '127.0.0.1', port: String(port) }).href)
  return {
    port,
    async stop() {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
      await removeFolder(folder)
    },
  }
}

/** Waits as long as it runs. */
async function answers(child: ChildProcess, url: string): Promise<void> {
  for (;;) {
    const client = new pg.Client({ connectionString: url })
    try {
      await client.connect()
      return await client.end()
    } catch (error) {
      if (hasExited(child)) throw error
      await sleep(50)
    }
  }
}
