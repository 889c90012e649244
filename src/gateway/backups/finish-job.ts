import { atomically, emit, type Kernel } from '#kernel/kernel.ts'
import { isOwnJob } from './foreign-jobs-store.ts'
import { factsOf } from './job-facts.ts'
import { storeOf } from './location/location.ts'
import { endJob, isOfAnother, type JobRow } from './store.ts'
import { beginNext } from './turns.ts'

type End = Omit<Parameters<typeof endJob>[2], 'completedAt'>

/** Ends the row and emits the event in one transaction. A backup that is not complete, or whose row is gone, leaves no file. */
export async function finishJob(kernel: Kernel, job: JobRow, end: End): Promise<JobRow | undefined> {
  const ended = await atomically(kernel, async (kernel) => {
    const ended = await endJob(kernel.db, job.id, { ...end, completedAt: kernel.now() })
    if (ended === undefined) return undefined
    const facts = factsOf(ended)
    if (ended.status === 'completed')
      await emit(kernel, 'backup_completed', { ...facts, size_bytes: Number(ended.sizeBytes ?? 0) })
    else await emit(kernel, 'backup_failed', { ...facts, error_message: ended.errorMessage ?? '' })
    return ended
  })
  if (ended?.status !== 'completed') await removeUnfinished(kernel, job)
  await beginNext(kernel).catch((error: unknown) =>
    kernel.log.warn({ event: 'job_failed', job: 'run-backup', error }, 'a waiting backup was not queued yet'),
  )
  return ended
}

export const COMPLETED = { status: 'completed', progressPct: 100, progressStage: 'done' } as const

/** A folder on another machine has nothing to remove. A file that `--output` named for another backup too is left to that one. */
export async function removeUnfinished(kernel: Kernel, job: JobRow): Promise<void> {
  const { id, jobType, location } = job
  if (jobType !== 'backup' || location === null || (await isOfAnother(kernel.db, id, location))) return
  if (!(await isOwnJob(kernel.db, job))) return
  await storeOf(kernel, location)
    .discard(location)
    .catch((error: unknown) =>
      kernel.log.warn(
        { event: 'backup_left', error },
        `the unfinished backup ${location} could not be removed`,
      ),
    )
}
