import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, rename, rm, statfs } from 'node:fs/promises'
import path from 'node:path'
import { fail } from '#gateway/errors.ts'
import type { BackupStore, OpenBackup, Written } from './backup-store.ts'

/** Backups as files. `minFree` bytes stay free on the disk. */
export const createFolderStore = (minFree: number): BackupStore => ({
  write: (file, source, signal) => writeBackup({ file, minFree, signal }, source),
  open: openBackup,
  remove: removeBackup,
  discard: removeBackup,
})

type WriteOptions = {
  readonly file: string
  /** Bytes that stay free on the disk. */
  readonly minFree: number
  readonly signal: AbortSignal
}

/** Bytes between two looks at the free space. */
const LOOK_EVERY = 16 * 1024 * 1024

/** Writes a file that only its owner can read. Its name appears when it is complete and on the disk; until then it ends in `.part`. */
async function writeBackup(
  { file, minFree, signal }: WriteOptions,
  source: AsyncIterable<Buffer>,
): Promise<Written> {
  const part = partOf(file)
  const hash = createHash('sha256')
  let size = 0
  let looked = 0
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
  await expectRoom(path.dirname(file), minFree)
  // Outside of the block below: a part that is there is another job's.
  await using handle = await open(part, 'wx', 0o600)
  try {
    for await (const chunk of source) {
      signal.throwIfAborted()
      hash.update(chunk)
      await handle.writeFile(chunk)
      size += chunk.length
      if (size - looked < LOOK_EVERY) continue
      looked = size
      await expectRoom(path.dirname(file), minFree)
    }
    await handle.sync()
    signal.throwIfAborted()
    await rename(part, file)
    await syncFolder(path.dirname(file))
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
  return { size, sha256: hash.digest('hex') }
}

const partOf = (file: string): string => `${file}.part`

/** Removes a backup, complete or not. */
async function removeBackup(file: string): Promise<void> {
  await rm(partOf(file), { force: true })
  await rm(file, { force: true })
}

async function expectRoom(folder: string, minFree: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder)
  if (bavail * bsize < minFree) throw fail('backup_disk_full')
}

/** So that a rename in the folder survives a power cut. */
async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r')
  await handle.sync()
}

/**
 * Opens a finished backup; undefined when the file is gone, or something else is in its place. A link is not followed, and a pipe is not
 * waited for: that would hold one of the few threads that all file and password work of the process shares.
 */
async function openBackup(file: string): Promise<OpenBackup | undefined> {
  try {
    const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const found = await handle.stat()
    if (found.isFile())
      return { size: found.size, content: () => contentOf(handle), close: () => handle.close() }
    await handle.close()
    return undefined
  } catch (error) {
    if (ABSENT.has((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

/** Of a name that is not there, of a link, and of a socket. */
const ABSENT = new Set(['ENOENT', 'ELOOP', 'ENXIO'])

export const exists = (file: string): Promise<boolean> =>
  lstat(file).then(
    () => true,
    () => false,
  )

const PIECE = 262_144

async function* contentOf(handle: FileHandle): AsyncGenerator<Buffer> {
  for (let at = 0; ; ) {
    const piece = Buffer.allocUnsafe(PIECE)
    const { bytesRead } = await handle.read(piece, 0, PIECE, at)
    if (bytesRead === 0) return
    at += bytesRead
    yield piece.subarray(0, bytesRead)
  }
}
