import { type FileHandle, open, readFile, rename } from 'node:fs/promises'
import path from 'node:path'

const LINES = 20

/** A new `server.log`; the one of the last run is kept beside it, older ones are not. */
export async function openLog(folder: string): Promise<FileHandle> {
  const file = path.join(folder, 'server.log')
  await rename(file, `${file}.1`).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  // `x` follows no symbolic link, which matters where root has handed the folder over.
  return open(file, 'ax', 0o600).catch((error: NodeJS.ErrnoException) => {
    // Another process starts on the folder at the same moment.
    if (error.code === 'EEXIST') return openLog(folder)
    throw error
  })
}

/** The last lines of a log, for an error. */
export async function logTail(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.trimEnd().split('\n').slice(-LINES).join('\n')
}
