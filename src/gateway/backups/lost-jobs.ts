import { emit, type Kernel } from '#kernel/kernel.ts'
import { removeBackup } from './backup-files.ts'
import { factsOf } from './job-facts.ts'
import { failLostJobs, type JobRow } from './store.ts'

const LOST = 'The process that ran the job ended, and the job with it. Start it again.'

/** Jobs whose process was killed have failed; their files are removed. The process that dies takes its programs with it. */
export async function failLost(kernel: Kernel): Promise<void> {
  for (const job of await failLostJobs(kernel.db, kernel.now(), LOST)) {
    kernel.log.warn({ event: 'backup_lost', job_id: job.id, client: job.clientName }, LOST)
    await removeUnfinished(kernel, job)
    await emit(kernel, 'backup_failed', { ...factsOf(job), error_message: LOST })
  }
}

/** On another machine there is nothing to remove. */
export async function removeUnfinished({ log }: Kernel, { jobType, location }: JobRow): Promise<void> {
  if (jobType !== 'backup' || location === null) return
  await removeBackup(location).catch((error: unknown) =>
    log.warn({ event: 'backup_left', error }, `the unfinished backup ${location} could not be removed`),
  )
}
