import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { chmod, chown, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { provision } from '#kernel/db/provision.ts'
import { withClient } from './database.ts'
import { eventually } from './embedded.ts'
import { freePort } from './free-port.ts'
import { exitOf } from './processes.ts'
import { createTemporaryFolder, removeFolder } from './temporary-folder.ts'

/** The folder of an installed PostgreSQL with its client programs; undefined where there is none. */
export async function installedPrograms(): Promise<string | undefined> {
  const versions = await readdir('/usr/lib/postgresql').catch(() => [])
  const [version] = versions
    .filter((name) => /^\d+$/.test(name))
    .sort((one, other) => Number(one) - Number(other))
  return version === undefined ? undefined : `/usr/lib/postgresql/${version}/bin`
}

export type InstalledServer = {
  /** Creates a database and returns the URL of its owner, a role that a client may use. */
  database(name: string): Promise<string>
  readonly superuserUrl: string
  stop(): Promise<void>
}

const PASSWORD = 'correct-horse'

export type InstalledOptions = {
  /** As `name=value`. */
  readonly settings?: readonly string[]
  /** Where the server's folder is created. */
  readonly place?: string
}

/** Starts a server of the installed PostgreSQL on a free port, on a new folder. */
export async function startInstalledServer(
  programs: string,
  { settings: more = ['fsync=off'], place }: InstalledOptions = {},
): Promise<InstalledServer> {
  const folder = await createTemporaryFolder(place)
  const [uid, gid] = await serverUser()
  const run = { cwd: '/', ...(process.getuid?.() === 0 && { uid, gid }) }
  const data = path.join(folder, 'server/data')
  const passwordFile = path.join(folder, 'password')
  await writeFile(passwordFile, PASSWORD)
  await mkdir(path.join(folder, 'server'))
  await chmod(folder, 0o711)
  if (process.getuid?.() === 0)
    for (const one of ['server', 'password']) await chown(path.join(folder, one), uid, gid)
  const initdb = ['-D', data, '-U', 'postgres', `--pwfile=${passwordFile}`, '--auth=scram-sha-256']
  await promisify(execFile)(
    `${programs}/initdb`,
    [...initdb, '--encoding=UTF8', '--no-locale', '--no-sync'],
    run,
  )
  const port = await freePort()
  const settings = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    `unix_socket_directories=${folder}/server`,
    ...more,
  ]
  const server: ChildProcess = spawn(
    `${programs}/postgres`,
    ['-D', data, ...settings.flatMap((setting) => ['-c', setting])],
    { ...run, stdio: 'ignore' },
  )
  const url = (role: string, database: string) =>
    `postgres://${role}:${PASSWORD}@127.0.0.1:${port}/${database}`
  const superuserUrl = url('postgres', 'postgres')
  await eventually(() =>
    withClient(superuserUrl, () => Promise.resolve()).then(
      () => true,
      () => false,
    ),
  )
  return {
    superuserUrl,
    async database(name) {
      const roles = [{ name, password: PASSWORD }]
      await provision(superuserUrl, { roles, databases: [{ name, owner: name }] })
      return url(name, name)
    },
    async stop() {
      server.kill('SIGINT')
      await exitOf(server)
      await removeFolder(folder)
    },
  }
}

/** PostgreSQL does not run as root. */
async function serverUser(): Promise<readonly [uid: number, gid: number]> {
  const accounts = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'))
  const [, , uid = '65534', gid = '65534'] = accounts.find(([name]) => name === 'postgres') ?? []
  return [Number(uid), Number(gid)]
}
