import { type FileHandle, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'

const LINES = 20

/** Opens a new `server.log` and keeps that of the previous run as `server.log.1`. */
export async function openLog(folder: string): Promise<FileHandle> {
  const file = path.join(folder, 'server.log')
  await rename(file, `${file}.1`).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  // `x` follows no symbolic link: another user may own the folder.
  return open(file, 'ax+', 0o600).catch((error: NodeJS.ErrnoException) => {
    // Another process starts on the folder at the same moment.
    if (error.code === 'EEXIST') return openLog(folder)
    throw error
  })
}

/** Bytes. A longer log is truncated. */
const MAX_BYTES = 8 * 2 ** 20
/** Bytes of its end that are kept in `server.log.1`. */
const KEPT = 2 ** 20
const EVERY = 10_000

/** Keeps the log of a running server within bounds, and closes it at its end. */
export function boundLog(folder: string, log: FileHandle, ended: Promise<unknown>): void {
  let trimming = Promise.resolve()
  const timer = setInterval(() => {
    // A failing disk shows elsewhere, and the log is not essential.
    trimming = trimming.then(() => trimLog(folder, log)).catch(() => {})
  }, EVERY).unref()
  ended.then(async () => {
    clearInterval(timer)
    await trimming
    await log.close()
  })
}

/** The server writes on into the same file, which it has opened for appending. */
async function trimLog(folder: string, log: FileHandle, max = MAX_BYTES): Promise<void> {
  const { size } = await log.stat()
  if (size <= max) return
  const { buffer, bytesRead } = await log.read(
    Buffer.alloc(Math.min(KEPT, size)),
    0,
    null,
    Math.max(0, size - KEPT),
  )
  const file = path.join(folder, 'server.log.1')
  await rm(file, { force: true })
  await writeFile(file, buffer.subarray(0, bytesRead), { mode: 0o600, flag: 'wx' })
  await log.truncate(0)
}

/** The last lines of a log, for an error. */
export async function logTail(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.trimEnd().split('\n').slice(-LINES).join('\n')
}
