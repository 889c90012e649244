import { rm } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EmbeddedServerError } from './error.ts'
import { type PidFile, readPidFile, stateOf } from './pid-file.ts'

/** A killed process's server hears of it within milliseconds; this is for a machine that is very busy. */
export const NOTICE_MS = 2_000

/** And then it writes its buffers out: 128 MB on a slow disk. */
export const SHUTDOWN_MS = 60_000

/**
 * Returns when no server runs on the folder; a left-over lock file is removed. Ours hold the folder's lock; this one is for servers
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
    // An empty file may also be one that is being written this instant.
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

/** What the server's lock file says, and whether that is true here. */
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
