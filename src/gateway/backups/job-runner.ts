import { Failure } from '#kernel/errors.ts'
import { emit, type Kernel } from '#kernel/kernel.ts'
import { redactText } from '#kernel/redact.ts'
import { restoreDump } from './dump/restore-dump.ts'
import { ProgramError } from './dump/run-program.ts'
import { COMPLETED, finishJob } from './finish-job.ts'
import { factsOf } from './job-facts.ts'
import { makeBackup } from './make-backup.ts'
import { leaseFrom, type Progress, type Running } from './running-job.ts'
import type { BackupSources } from './sources.ts'
import { claimJob, type JobRow, renewJob } from './store.ts'

export type BackupRunner = {
  /** Runs a waiting job to its end, in every case: a failure is written into its row. Undefined when another process has it. */
  run(id: string, onProgress?: (progress: Progress) => void): Promise<JobRow | undefined>
  /** Ends the running jobs: they fail, and can be started again. */
  stop(): void
}

/** When a process that cannot renew stops its job: before another one takes it for dead. */
const GIVE_UP = 20_000
const RENEW_EVERY = 1_000
/** Longest job: a day is the longest that the queue keeps one. */
const MAX_TIME = 20 * 3_600_000

/** Why a job ends before its time; the message is for the operator. */
class Ended extends Error {
  readonly status: 'failed' | 'cancelled' | 'gone'
  constructor(status: Ended['status'], message: string) {
    super(message)
    this.status = status
  }
}

const CANCELLED = () => new Ended('cancelled', 'Cancelled by the operator.')
const STOPPED = () => new Ended('failed', 'The service was stopped while the job ran. Start it again.')
const UNREACHABLE = () =>
  new Ended('failed', 'The control database did not answer while the job ran. Start it again.')
const TOO_LONG = () => new Ended('failed', 'The job took longer than 20 hours.')
const GONE = () => new Ended('gone', 'Another process has ended the job.')

export function createBackupRunner(kernel: Kernel, sources: BackupSources): BackupRunner {
  const stopping = new AbortController()
  return {
    stop: () => stopping.abort(STOPPED()),
    async run(id, onProgress = () => {}) {
      if (stopping.signal.aborted) throw stopping.signal.reason
      const job = await claimJob(kernel.db, id, leaseFrom(kernel.now()))
      if (job === undefined) return undefined
      const lease = holdLease(kernel, id, stopping.signal, onProgress)
      try {
        return await runClaimed(kernel, sources, job, lease)
      } finally {
        lease.release()
      }
    },
  }
}

async function runClaimed(
  kernel: Kernel,
  sources: BackupSources,
  job: JobRow,
  running: Running,
): Promise<JobRow | undefined> {
  await emit(kernel, 'backup_started', factsOf(job))
  try {
    const work = job.jobType === 'backup' ? makeBackup : restoreDump
    const result = await work(kernel, sources, job, running)
    return await finishJob(kernel, job, { ...COMPLETED, ...result })
  } catch (error) {
    const end = endOf(running.signal.aborted ? running.signal.reason : error)
    kernel.disk.noteFailure(error)
    if (end.isBug) kernel.log.error({ event: 'backup_failed', job_id: job.id, error }, end.message)
    else kernel.log.warn({ event: 'backup_failed', job_id: job.id, client: job.clientName }, end.message)
    if (end.status === 'gone') return undefined
    return finishJob(kernel, job, { status: end.status, errorMessage: end.message })
  }
}

type End = { readonly status: Ended['status']; readonly message: string; readonly isBug: boolean }

/** The sentence for the operator. It has no credentials: programs' output is redacted, and other errors are not repeated. */
function endOf(error: unknown): End {
  if (error instanceof Ended) return { status: error.status, message: error.message, isBug: false }
  const failed = { status: 'failed', isBug: false } as const
  if (error instanceof Failure)
    return { ...failed, message: [error.message, error.hint].filter(Boolean).join('. ') }
  if (error instanceof ProgramError) return { ...failed, message: error.message }
  const { code, syscall, message = 'unknown' } = Object(error) as NodeJS.ErrnoException // whatever was thrown
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return { ...failed, message: 'No space is left on the disk of the backups.' }
  if (code !== undefined && syscall !== undefined)
    return { ...failed, message: `A file of the backup cannot be used (${syscall}: ${code}).` }
  return { ...failed, message: `The job failed: ${redactText(message)}`, isBug: true }
}

type Lease = Running & { release(): void }

/** Renews the lease of a job each second, writes its progress and notices when it is cancelled. */
function holdLease(
  kernel: Kernel,
  id: string,
  stopping: AbortSignal,
  onProgress: (progress: Progress) => void,
): Lease {
  const ending = new AbortController()
  let progress: Progress = { progressPct: 0, progressStage: 'starting' }
  let renewed = performance.now()
  let isRenewing = false
  const began = renewed

  async function renew(): Promise<void> {
    const asked = performance.now()
    const row = await renewJob(kernel.db, id, leaseFrom(kernel.now()), progress)
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
