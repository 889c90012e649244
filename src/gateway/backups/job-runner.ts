import { emit, type Kernel } from '#kernel/kernel.ts'
import { restoreDump } from './dump/restore-dump.ts'
import { COMPLETED, finishJob } from './finish-job.ts'
import { endOf } from './job-end.ts'
import { factsOf } from './job-facts.ts'
import { holdLease, STOPPED } from './job-lease.ts'
import { makeBackup } from './make-backup.ts'
import { leaseFrom, type Progress, type Running } from './running-job.ts'
import type { BackupSources } from './sources.ts'
import { claimJob, type JobRow } from './store.ts'

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
    if (end.isBug) kernel.log.error({ event: 'backup_failed', job_id: job.id, error }, end.message)
    else kernel.log.warn({ event: 'backup_failed', job_id: job.id, client: job.clientName }, end.message)
    if (end.status === 'gone') return undefined
    return finishJob(kernel, job, { status: end.status, errorMessage: end.message })
  }
}
