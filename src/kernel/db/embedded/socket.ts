import { mkdtemp, readlink, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { giveFiles, type SystemUser } from './system-user.ts'

/** `sun_path` has 104 bytes on macOS and 108 on Linux, including the final zero. */
const MAX_PATH_BYTES = 103

const PREFIX = 'gatehouse-'

/**
 * The folder of the server's socket: its own folder, or, where that path is too long for a socket, a private temporary
 * folder. `<folder>/socket` is a link to it, so that the next start can remove it after a crash.
 */
export async function makeSocketFolder(folder: string, port: string, user: SystemUser): Promise<string> {
  await removeSocketFolder(folder)
  if (Buffer.byteLength(path.join(folder, `.s.PGSQL.${port}`)) <= MAX_PATH_BYTES) return folder
  const temporary = await mkdtemp(path.join(tmpdir(), PREFIX))
  await giveFiles(user, temporary)
  await symlink(temporary, path.join(folder, 'socket'))
  return temporary
}

/** Removes the temporary folder, if there is one. */
export async function removeSocketFolder(folder: string): Promise<void> {
  const link = path.join(folder, 'socket')
  const target = await readlink(link).catch(() => undefined)
  if (target === undefined) return
  // Another user may own the link, so only folders with this prefix are removed.
  const name = path.basename(target)
  if (name.startsWith(PREFIX)) await rm(path.join(tmpdir(), name), { recursive: true, force: true })
  await rm(link)
}
