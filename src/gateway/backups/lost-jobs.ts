import { atomically, emit, type Kernel } from '#kernel/kernel.ts'
import { factsOf } from './job-facts.ts'
import { storeOf } from './location/location.ts'
import { failLostJobs, type JobRow } from './store.ts'

const LOST = 'The process that ran the job ended, and the job with it. Start it again.'

/** Jobs whose process was killed have failed; their files are removed. The process that dies takes its programs with it. */
export async function failLost(kernel: Kernel): Promise<void> {
  // A job that has failed is not found again, so its event is written with it.
  const lost = await atomically(kernel, async (kernel) => {
    const lost = await failLostJobs(kernel.db, kernel.now(), LOST)
    for (const job of lost) await emit(kernel, 'backup_failed', { ...factsOf(job), error_message: LOST })
    return lost
  })
  for (const job of lost) {
    kernel.log.warn({ event: 'backup_lost', job_id: job.id, client: job.clientName }, LOST)
    await removeUnfinished(kernel, job)
  }
}

/** A folder on another machine has nothing to remove. */
export async function removeUnfinished(kernel: Kernel, { jobType, location }: JobRow): Promise<void> {
  if (jobType !== 'backup' || location === null) return
  await storeOf(kernel, location)
    .discard(location)
    .catch((error: unknown) =>
      kernel.log.warn(
        { event: 'backup_left', error },
        `the unfinished backup ${location} could not be removed`,
      ),
    )
}
