import { execFile } from 'node:child_process'
import { chown, lchown, lstat, readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { EmbeddedServerError } from './error.ts'

/** The user that the server runs as: PostgreSQL refuses to run as root. */
export type SystemUser = {
  /** Owner of the server's folder. */
  readonly uid: number
  readonly gid: number
  /** Prefix of every command. */
  readonly wrap: readonly string[]
  /** Set when the process has to be started as that user, instead of by `wrap`. */
  readonly spawnAs?: { readonly uid: number; readonly gid: number }
}

/** The whole environment of the server and its tools, without variables of this process (PGDATA, LD_PRELOAD, …). */
export const ENVIRONMENT = { PATH: '/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C', TZ: 'UTC' }

/** This process's user; for root the first user that is permitted here and can read these paths. */
export async function findSystemUser(paths: readonly string[]): Promise<SystemUser> {
  const uid = process.getuid?.() ?? -1
  if (uid !== 0) return { uid, gid: process.getgid?.() ?? -1, wrap: [] }
  for (const user of usersForRoot(await readFile('/etc/passwd', 'utf8'))) {
    if (await reaches(user, paths)) return user
  }
  throw new EmbeddedServerError(
    `PostgreSQL does not run as root, and here neither \`unshare --user\` nor a user postgres or nobody can ` +
      `reach ${paths.join(' and ')}. Start as another user, or set DATABASE_URL.`,
  )
}

/**
 * In order: root in a user namespace, where it is `nobody` without capabilities, but still owns its folders, also those
 * below a folder of mode 0700; the account postgres or nobody; that account with the one capability
 * that lets it pass folders closed to it, as in a container below /root. With it the server could open files of other users,
 * as it could open root's in the namespace.
 */
export function usersForRoot(passwd: string): SystemUser[] {
  const account = serverAccount(passwd)
  if (!account) return [IN_NAMESPACE]
  const { uid, gid } = account
  const user = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
  const capabilities = ['bounding-set', 'inh-caps', 'ambient-caps'].map(
    (set) => `--${set}=-all,+dac_override`,
  )
  return [
    IN_NAMESPACE,
    { uid, gid, wrap: [], spawnAs: { uid, gid } },
    { uid, gid, wrap: ['setpriv', ...user, ...capabilities, '--'] },
  ]
}

/** 65534, because initdb needs a user name, and that number is `nobody` on nearly every system. */
const IN_NAMESPACE: SystemUser = { uid: 0, gid: 0, wrap: ['unshare', '--user', '--map-user=65534', '--'] }

function serverAccount(passwd: string): { uid: number; gid: number } | undefined {
  const accounts = passwd.split('\n').map((line) => line.split(':'))
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = accounts.find((fields) => fields[0] === name) ?? []
    // Not root's own number, and not macOS's nobody, which is -2.
    if (Number(uid) > 0) return { uid: Number(uid), gid: Number(gid) }
  }
  return undefined
}

async function reaches({ wrap, spawnAs }: SystemUser, paths: readonly string[]): Promise<boolean> {
  // Not `test -x`: access(2) ignores capabilities.
  const [command = '', ...args] = [...wrap, 'ls', '-d', ...paths]
  return promisify(execFile)(command, args, { cwd: '/', env: ENVIRONMENT, ...spawnAs }).then(
    () => true,
    () => false,
  )
}

/** Gives single files and folders to the server's user. */
export async function giveFiles(user: SystemUser, ...paths: readonly string[]): Promise<void> {
  if (user.uid === process.getuid?.()) return
  for (const path of paths) await chown(path, user.uid, user.gid)
}

/** Gives a folder and its contents to the server's user; needed for root only. */
export async function giveFolder(folder: string, user: SystemUser): Promise<void> {
  if (process.getuid?.() !== 0) return
  if ((await lstat(folder)).uid === user.uid) return
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    await lchown(path.join(entry.parentPath, entry.name), user.uid, user.gid)
  }
  // The folder itself last, so that an interrupted change is repeated.
  await chown(folder, user.uid, user.gid)
}
