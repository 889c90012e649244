import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type GuardedProcess, spawnGuarded } from './guarded-process.ts'
import type { Cluster } from './initdb.ts'
import { boundLog, logTail, openLog } from './log-file.ts'
import { readPidFile } from './pid-file.ts'
import { pidFileOf, runningServerError } from './previous-server.ts'
import { startFailure } from './start-failure.ts'

/** Interval at which the lock file is read until it says `ready`; a warm start takes about 40 ms. */
const POLL_MS = 5

/** Time for a server to end when its start was aborted. */
const GIVEN_UP_MS = 5_000

/** Time for the children of a killed server to end. */
const SURVIVORS_MS = 10_000

/** Starts the server and resolves when it accepts connections, without a limit for its recovery from a crash. */
export async function launch(
  cluster: Cluster,
  settings: Readonly<Record<string, string>>,
): Promise<GuardedProcess> {
  cluster.report('start')
  const since = performance.now()
  for (;;) {
    const attempt = await tryLaunch(cluster, settings)
    if ('running' in attempt) return attempt.running
    const hasSurvivors = attempt.log.includes('pre-existing shared memory block')
    if (!hasSurvivors || performance.now() - since > SURVIVORS_MS) {
      // Another process may have started a server at the same moment.
      throw (
        (await runningServerError(cluster.folder)) ??
        startFailure('it ended at once', cluster, attempt.code, attempt.log)
      )
    }
    await sleep(100, undefined, { signal: cluster.signal })
  }
}

type Attempt = { readonly running: GuardedProcess } | { readonly code: number | null; readonly log: string }

async function tryLaunch(cluster: Cluster, settings: Readonly<Record<string, string>>): Promise<Attempt> {
  const log = await openLog(cluster.folder)
  const parameters = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const command = [cluster.binaries.postgres, '-D', path.join(cluster.folder, 'data'), ...parameters]
  const running = await spawnGuarded(cluster.user, command, log.fd, cluster.lock.fd).catch(
    async (error: unknown) => {
      await log.close()
      throw error
    },
  )
  boundLog(cluster.folder, log, running.exited)
  if (await becomesReady(cluster, running)) return { running }
  const { code } = await running.exited
  return { code, log: await logTail(path.join(cluster.folder, 'server.log')) }
}

async function becomesReady({ folder, signal }: Cluster, running: GuardedProcess): Promise<boolean> {
  let hasEnded = false
  running.exited.then(() => {
    hasEnded = true
  })
  while (!hasEnded) {
    const file = await readPidFile(pidFileOf(folder))
    if (file?.pid === running.pid && file.status === 'ready') return true
    if (signal?.aborted) {
      await running.end(GIVEN_UP_MS)
      throw signal.reason
    }
    await sleep(POLL_MS)
  }
  return false
}
