import { type FileHandle, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'

const LINES = 20

/** A new `server.log`; the one of the last run is kept beside it, older ones are not. */
export async function openLog(folder: string): Promise<FileHandle> {
  const file = path.join(folder, 'server.log')
  await rename(file, `${file}.1`).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  // `x` follows no symbolic link, which matters where root has handed the folder over.
  return open(file, 'ax+', 0o600).catch((error: NodeJS.ErrnoException) => {
    // Another process starts on the folder at the same moment.
    if (error.code === 'EEXIST') return openLog(folder)
    throw error
  })
}

/** Bytes. Beyond it the log begins anew. */
const MOST = 8 * 2 ** 20
/** Of the end of what it was, kept beside it. */
const KEPT = 2 ** 20
const EVERY = 10_000

/** Keeps the log of a running server within bounds, and closes it at its end. */
export function boundLog(folder: string, log: FileHandle, ended: Promise<unknown>): void {
  let trimming = Promise.resolve()
  const timer = setInterval(() => {
    // The log is there for people; a disk that fails shows elsewhere.
    trimming = trimming.then(() => trimLog(folder, log)).catch(() => {})
  }, EVERY).unref()
  ended.then(async () => {
    clearInterval(timer)
    await trimming
    await log.close()
  })
}

/** The server goes on writing into the same file: every write is an append, wherever the end is by then. */
export async function trimLog(folder: string, log: FileHandle, most = MOST): Promise<void> {
  const { size } = await log.stat()
  if (size <= most) return
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
