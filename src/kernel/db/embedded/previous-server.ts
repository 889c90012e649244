import { rm } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EmbeddedServerError } from './error.ts'
import { type PidFile, readPidFile, stateOf } from './pid-file.ts'

/** Time for a server to notice that its process was killed: milliseconds, or more on a busy machine. */
export const NOTICE_MS = 2_000

/** Time for it to write its buffers: 128 MB on a slow disk. */
export const SHUTDOWN_MS = 60_000

/**
 * Returns when no server runs on the folder, and removes a left-over lock file. Servers of ours hold the folder's lock; this is for servers
 * that were started by hand.
 */
export async function waitForPrevious(
  folder: string,
  report: (step: string) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  const lock = pidFileOf(folder)
  const since = performance.now()
  for (let round = 0; ; round++) {
    const { file, state } = await findServer(folder)
    if (!file || state === 'gone') return
    const patience = file.status === 'stopping' ? SHUTDOWN_MS : NOTICE_MS
    // An empty file may be one that is being written at this moment.
    if (state === 'left over' && (!Number.isNaN(file.pid) || performance.now() - since > NOTICE_MS)) {
      return rm(lock, { force: true })
    }
    if (state === 'running' && performance.now() - since > patience) throw alreadyRuns(folder, file)
    if (round === 0) report('wait for the previous server')
    await sleep(20, undefined, { signal })
  }
}

/** The error for a server that runs on the folder, when one does. */
export async function runningServerError(folder: string): Promise<EmbeddedServerError | undefined> {
  const { file, state } = await findServer(folder)
  return file && state === 'running' ? alreadyRuns(folder, file) : undefined
}

type ServerOn = { readonly file: PidFile | undefined; readonly state: Awaited<ReturnType<typeof stateOf>> }

/** The server's lock file, and whether it is true. */
export async function findServer(folder: string): Promise<ServerOn> {
  const file = await readPidFile(pidFileOf(folder))
  return { file, state: await stateOf(file) }
}

export function pidFileOf(folder: string): string {
  return path.join(folder, 'data', 'postmaster.pid')
}

export function alreadyRuns(folder: string, { pid }: PidFile): EmbeddedServerError {
  return new EmbeddedServerError(
    `A PostgreSQL server already runs on ${folder} (process ${pid}). ` +
      'Stop the other process that uses this folder, or give this one another folder (server.data_dir).',
  )
}
