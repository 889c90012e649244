import { execFile } from 'node:child_process'
import { chown, lchown, lstat, readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { EmbeddedServerError } from './error.ts'

/** Whom the server runs as: PostgreSQL refuses to run as root. */
export type SystemUser = {
  /** Owner of the server's folder. */
  readonly uid: number
  readonly gid: number
  /** Put before every command. */
  readonly wrap: readonly string[]
  /** Set where the process has to be started as that user, rather than `wrap` seeing to it. */
  readonly spawnAs?: { readonly uid: number; readonly gid: number }
}

/** The only environment the server and its tools get: nothing of ours (PGDATA, LD_PRELOAD, …) leaks in. */
export const ENVIRONMENT = { PATH: '/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C', TZ: 'UTC' }

/** The first of root's ways that is permitted here and reaches these paths; everybody else runs it themselves. */
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
 * A namespace, in which root is nobody without a single capability but still the owner of its folders, also of those
 * below one of mode 0700; else an account made for such things; else that account with the one capability
 * that takes it through folders closed to it, as in a container below /root: it can then open other users' files,
 * but so it can in the namespace, root's.
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

/** 65534 because initdb looks its user's name up, and that is `nobody` nearly everywhere. */
const IN_NAMESPACE: SystemUser = { uid: 0, gid: 0, wrap: ['unshare', '--user', '--map-user=65534', '--'] }

function serverAccount(passwd: string): { uid: number; gid: number } | undefined {
  const accounts = passwd.split('\n').map((line) => line.split(':'))
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = accounts.find((fields) => fields[0] === name) ?? []
    // Root's own number is no help, and macOS has a nobody of -2.
    if (Number(uid) > 0) return { uid: Number(uid), gid: Number(gid) }
  }
  return undefined
}

async function reaches({ wrap, spawnAs }: SystemUser, paths: readonly string[]): Promise<boolean> {
  // Not `test -x`: access(2) takes no notice of capabilities.
  const [command = '', ...args] = [...wrap, 'ls', '-d', ...paths]
  return promisify(execFile)(command, args, { cwd: '/', env: ENVIRONMENT, ...spawnAs }).then(
    () => true,
    () => false,
  )
}

/** Gives single files and folders to the one who will work there. */
export async function giveFiles(user: SystemUser, ...paths: readonly string[]): Promise<void> {
  if (user.uid === process.getuid?.()) return
  for (const path of paths) await chown(path, user.uid, user.gid)
}

/** Gives a folder with all that is in it to the one who will work there; only root ever has to. */
export async function giveFolder(folder: string, user: SystemUser): Promise<void> {
  if (process.getuid?.() !== 0) return
  if ((await lstat(folder)).uid === user.uid) return
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    await lchown(path.join(entry.parentPath, entry.name), user.uid, user.gid)
  }
  // Last, so that an interrupted hand-over is done again.
  await chown(folder, user.uid, user.gid)
}
