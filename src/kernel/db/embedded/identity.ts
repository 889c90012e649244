import { execFile } from 'node:child_process'
import { chown, lchown, lstat, readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { EmbeddedServerError } from './error.ts'

/** Whom the server runs as: PostgreSQL refuses to run as root. */
export type Identity = {
  readonly who: string
  /** Owner of the server's folder. */
  readonly uid: number
  readonly gid: number
  /** Put before every command. */
  readonly wrap: readonly string[]
  /** Whether a process has to be started with `uid` and `gid` because they are not ours. */
  readonly switches: boolean
}

/** The only environment the server and its tools get: nothing of ours (PGDATA, LD_PRELOAD, …) leaks in. */
export const ENVIRONMENT = { PATH: '/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C', TZ: 'UTC' }

/**
 * Root first tries a user namespace, in which it is nobody without a single capability but still reaches its own
 * folders, also those below a folder of mode 0700; then an account made for such things.
 */
export async function findIdentity(): Promise<Identity> {
  const uid = process.getuid?.() ?? -1
  if (uid !== 0) return { who: 'this user', uid, gid: process.getgid?.() ?? -1, wrap: [], switches: false }
  if (await unshareWorks()) return IN_NAMESPACE
  const account = serverAccount(await readFile('/etc/passwd', 'utf8'))
  if (account) return account
  throw new EmbeddedServerError(
    'PostgreSQL does not run as root, `unshare --user` is not permitted here, and there is no user postgres or ' +
      'nobody to run it as. Start as another user, or set DATABASE_URL.',
  )
}

/** 65534 because initdb looks its user's name up, and that is `nobody` nearly everywhere. */
export const IN_NAMESPACE: Identity = {
  who: 'root in a user namespace',
  uid: 0,
  gid: 0,
  wrap: ['unshare', '--user', '--map-user=65534', '--'],
  switches: false,
}

async function unshareWorks(): Promise<boolean> {
  const [command = '', ...args] = [...IN_NAMESPACE.wrap, 'true']
  return promisify(execFile)(command, args, { env: ENVIRONMENT }).then(
    () => true,
    () => false,
  )
}

/** The account `postgres`, else `nobody`, of the text of /etc/passwd. */
export function serverAccount(passwd: string): Identity | undefined {
  const accounts = passwd.split('\n').map((line) => line.split(':'))
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = accounts.find((fields) => fields[0] === name) ?? []
    // Root's own number is no help, and macOS has a nobody of -2.
    if (!(Number(uid) > 0)) continue
    return { who: `user ${name}`, uid: Number(uid), gid: Number(gid), wrap: [], switches: true }
  }
  return undefined
}

/** Gives a folder with all that is in it to the one who will work there; only root ever has to. */
export async function handOver(folder: string, identity: Identity): Promise<void> {
  if (process.getuid?.() !== 0) return
  if ((await lstat(folder)).uid === identity.uid) return
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    await lchown(path.join(entry.parentPath, entry.name), identity.uid, identity.gid)
  }
  // Last, so that an interrupted hand-over is done again.
  await chown(folder, identity.uid, identity.gid)
}
