import { setTimeout as sleep } from 'node:timers/promises'
import { emit, type Kernel } from '#kernel/kernel.ts'
import { archiveOf } from '../archive/make-archive.ts'
import { dumpOf } from '../dump/make-dump.ts'
import { restoreDump } from '../dump/restore-dump.ts'
import { storeOf } from '../location/location.ts'
import { type BackupSources, sourceOf } from '../sources.ts'
import { COMPLETED, factsOf, finishJob, type JobOutcome, outcomeOf } from './end.ts'
import { holdLease, type JobControl, STOPPED } from './lease.ts'
import { claimJob, type JobRow, type Progress } from './store.ts'

type BackupRunner = {
  /** Runs a waiting job to its end, in every case: a failure is written into its row. Undefined when another process has it. */
  run(id: string, onProgress?: (progress: Progress) => void): Promise<JobRow | undefined>
  /** Ends the running jobs: they fail, and can be started again. */
  stop(): void
}

export function createBackupRunner(kernel: Kernel, sources: BackupSources): BackupRunner {
  const stopping = new AbortController()
  return {
    stop: () => stopping.abort(STOPPED()),
    async run(id, onProgress = () => {}) {
      if (stopping.signal.aborted) throw stopping.signal.reason
      const job = await claimJob(kernel.db, id, kernel.now())
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
  running: JobControl,
): Promise<JobRow | undefined> {
  await emit(kernel, 'backup_started', factsOf(job))
  let done: JobOutcome
  try {
    const work = job.jobType === 'backup' ? makeBackup : restoreDump
    done = { ...COMPLETED, ...(await work(kernel, sources, job, running)) }
  } catch (error) {
    const outcome = outcomeOf(running.signal.aborted ? running.signal.reason : error)
    if (outcome.isBug) kernel.log.error({ event: 'backup_failed', job_id: job.id, error }, outcome.message)
    else kernel.log.warn({ event: 'backup_failed', job_id: job.id, client: job.clientName }, outcome.message)
    if (outcome.status === 'gone') return undefined
    return finishJob(kernel, job, { status: outcome.status, errorMessage: outcome.message })
  }
  return finishAtLast(kernel, job, done)
}

const TRIES = 5
const PAUSE = 1_000

/** The work is done, so a control database that fails meanwhile is asked again, within the lease. */
async function finishAtLast(kernel: Kernel, job: JobRow, outcome: JobOutcome): Promise<JobRow | undefined> {
  for (let tries = 1; ; tries++) {
    try {
      return await finishJob(kernel, job, outcome)
    } catch (error) {
      if (tries === TRIES) throw error
      kernel.log.warn(
        { event: 'backup_end_repeated', job_id: job.id, error },
        'the end of a backup job could not be written yet',
      )
      await sleep(PAUSE)
    }
  }
}

/** Writes the backup of a job to its location. */
async function makeBackup(
  kernel: Kernel,
  sources: BackupSources,
  job: JobRow,
  running: JobControl,
): Promise<{ readonly sizeBytes: string; readonly sha256: string }> {
  if (job.location === null) throw new Error(`backup ${job.id} has no location`)
  const source = await sourceOf(kernel, sources, job.clientName)
  const bytes =
    source.format === 'archive'
      ? archiveOf(kernel, source.embedded, job, running)
      : await dumpOf(kernel, sources, source, running)
  const store = storeOf(kernel, job.location)
  const { size, sha256 } = await store.write(job.location, bytes, running.signal)
  return { sizeBytes: String(size), sha256 }
}
