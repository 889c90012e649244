import type { Kernel } from '#kernel/kernel.ts'
import { type Progress, renewJob } from './store.ts'

/** When a process that cannot renew stops its job: before another one takes it for dead. */
const GIVE_UP = 20_000
const RENEW_EVERY = 1_000
/** Longest job: a day is the longest that the queue keeps one. */
const MAX_TIME = 20 * 3_600_000

/** Why a job ends before its time; the message is for the operator. */
export class JobEnded extends Error {
  readonly status: 'failed' | 'cancelled' | 'gone'
  constructor(status: JobEnded['status'], message: string) {
    super(message)
    this.status = status
  }
}

const CANCELLED = () => new JobEnded('cancelled', 'Cancelled by the operator.')
export const STOPPED = () =>
  new JobEnded('failed', 'The service was stopped while the job ran. Start it again.')
const UNREACHABLE = () =>
  new JobEnded('failed', 'The control database did not answer while the job ran. Start it again.')
const TOO_LONG = () => new JobEnded('failed', 'The job took longer than 20 hours.')
const GONE = () => new JobEnded('gone', 'Another process has ended the job.')

/** How a running job is ended, and reports its progress. */
export type JobControl = {
  /** Aborts when the job is cancelled, when this process stops, or when another process has ended the job. */
  readonly signal: AbortSignal
  report(stage: string, fraction?: number): void
}

type Lease = JobControl & { release(): void }

/** Renews the lease of a job each second, writes its progress and notices when it is cancelled. */
export function holdLease(
  kernel: Kernel,
  id: string,
  stopping: AbortSignal,
  onProgress: (progress: Progress) => void,
): Lease {
  const ending = new AbortController()
  let progress: Progress = { progressPct: 0, progressStage: 'starting' }
  const began = performance.now()
  let renewed = began
  let isRenewing = false

  async function renew(): Promise<void> {
    const asked = performance.now()
    const row = await renewJob(kernel.db, id, kernel.now(), progress)
    renewed = asked
    if (row === undefined) ending.abort(GONE())
    else if (row.cancelRequested) ending.abort(CANCELLED())
  }

  const timer = setInterval(() => {
    const now = performance.now()
    if (now - renewed > GIVE_UP) ending.abort(UNREACHABLE())
    if (now - began > MAX_TIME) ending.abort(TOO_LONG())
    if (isRenewing) return
    isRenewing = true
    // A failure counts when it lasts.
    renew()
      .catch(() => {})
      .finally(() => {
        isRenewing = false
      })
  }, RENEW_EVERY)

  return {
    signal: AbortSignal.any([ending.signal, stopping]),
    report(progressStage, fraction = 0) {
      progress = { progressStage, progressPct: Math.min(99, Math.max(0, Math.round(fraction * 100))) }
      onProgress(progress)
    },
    release: () => clearInterval(timer),
  }
}
