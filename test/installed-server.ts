import { execFile } from 'node:child_process'
import { access, chmod, chown, mkdir } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { withClient } from './database.ts'
import { freePort } from './free-port.ts'
import { createTemporaryFolder, removeFolder } from './temporary-folder.ts'

const run = promisify(execFile)

/** The programs of Debian's package postgresql-15. */
const PROGRAMS = '/usr/lib/postgresql/15/bin'

/** For the option `skip` of a test: the reason why there is no such server, or false. */
export const noInstalledServer: string | false = await access(path.join(PROGRAMS, 'initdb')).then(
  () => false,
  () => `PostgreSQL 15 is not installed in ${PROGRAMS}`,
)

export type InstalledServer = {
  /** A database of a role without special rights. */
  readonly url: string
  stop(): Promise<void>
}

/** Starts Debian's PostgreSQL 15 on a free port, with a new data folder. */
export async function startInstalledServer(): Promise<InstalledServer> {
  const folder = await createTemporaryFolder()
  const data = path.join(folder, 'server')
  await mkdir(data)
  const as = await userFor(folder, data)
  const call = (program: string, ...args: string[]) => {
    const [command = '', ...rest] = [...as, path.join(PROGRAMS, program), ...args]
    return run(command, rest, { cwd: data })
  }
  const port = await freePort()
  await call('initdb', '-D', `${data}/data`, '-U', 'postgres', '--auth=trust', '--no-sync', '--encoding=UTF8')
  const options = `-p ${port} -k ${data} -c listen_addresses=127.0.0.1 -c fsync=off`
  await call('pg_ctl', '-D', `${data}/data`, '-w', '-l', `${data}/log`, '-o', options, 'start')
  await withClient(`postgres://postgres@127.0.0.1:${port}/postgres`, async (client) => {
    await client.query('create role app login')
    await client.query('create database app owner app')
  })
  return {
    url: `postgres://app@127.0.0.1:${port}/app`,
    async stop() {
      await call('pg_ctl', '-D', `${data}/data`, '-m', 'immediate', 'stop')
      await removeFolder(folder)
    },
  }
}

/** PostgreSQL refuses to run as root, so it runs as Debian's user then. */
async function userFor(folder: string, data: string): Promise<readonly string[]> {
  if (process.getuid?.() !== 0) return []
  const [uid = 0, gid = 0] = await Promise.all(
    ['-u', '-g'].map(async (flag) => Number((await run('id', [flag, 'postgres'])).stdout)),
  )
  await chmod(folder, 0o711)
  await chown(data, uid, gid)
  return ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
}
