import { Failure } from '#kernel/errors.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { forgetFormerState, outcomeOf } from '../dump/restore-transaction.ts'
import { type BackupSources, type Source, sourceOf } from '../sources.ts'
import { COMPLETED, finishJob, type JobOutcome } from './end.ts'
import { disownJobs, leaveLost, listLost, listPending, takeLost } from './lost-store.ts'
import type { JobRow } from './store.ts'

type Dumped = Extract<Source, { format: 'dump' }>

const failed = (errorMessage: string): JobOutcome => ({ status: 'failed', errorMessage })
const LOST = failed('The process that ran the job ended, and the job with it. Start it again.')
const UNKNOWN = failed(
  'The process that ran the restore ended, and it is unknown whether the data was replaced: look at it, or restore again.',
)
/** After this time a restore whose transaction still runs is looked up again, milliseconds. */
const LOOK_AGAIN = 5_000
/** How long the database of a client may be silent before its restore has failed, milliseconds. */
const PATIENCE = 15 * 60_000

/** A process claims a job at once when it has taken it from the queue, milliseconds. */
const CLAIM_MS = 60_000

/** Queues the waiting jobs again that a process took from the queue and died before it claimed them. */
export async function queueAgain(kernel: Kernel): Promise<void> {
  const { db, jobs, log } = kernel
  for (const { id, clientName } of await listPending(db, new Date(kernel.now().getTime() - CLAIM_MS))) {
    const data = { job: id }
    if (await jobs.isWaiting(db, 'run-backup', data)) continue
    log.warn(
      { event: 'backup_queued_again', job_id: id, client: clientName },
      'a waiting job was queued again',
    )
    await jobs.enqueue(db, 'run-backup', data)
  }
}

/** Ends the jobs of other installations, and those whose process was killed. The process that dies takes its programs with it. */
export async function endLost(kernel: Kernel, sources: BackupSources): Promise<void> {
  await disownJobs(kernel)
  for (const job of await listLost(kernel.db, kernel.now())) {
    const end = job.transactionId === null ? LOST : await endOfRestore(kernel, sources, job)
    if (end === undefined) continue
    kernel.log.warn(
      { event: 'backup_lost', job_id: job.id, client: job.clientName },
      end.errorMessage ?? 'a restore whose process ended had replaced the data',
    )
    await finishJob(kernel, job, end)
  }
}

/**
 * A restore whose transaction could commit: the database knows whether it has. Undefined when this is to be looked up again, and the client
 * stays frozen.
 */
async function endOfRestore(
  kernel: Kernel,
  sources: BackupSources,
  job: JobRow,
): Promise<JobOutcome | undefined> {
  const now = kernel.now()
  // One process does it: keys of later writes must not be deleted.
  if (!(await takeLost(kernel.db, job.id, now))) return undefined
  try {
    const source = await sourceOf(kernel, sources, job.clientName)
    const end = source.format === 'dump' ? await endByDatabase(kernel, source, job) : UNKNOWN
    if (end === undefined) await leaveLost(kernel.db, job.id, new Date(kernel.now().getTime() + LOOK_AGAIN))
    return end
  } catch (error) {
    const isGone = error instanceof Failure && error.code === 'unknown_client'
    if (isGone || now.getTime() - job.updatedAt.getTime() > PATIENCE) return UNKNOWN
    kernel.log.warn(
      { event: 'restore_unclear', job_id: job.id, error },
      'the end of a restore is not known yet',
    )
    return undefined
  }
}

async function endByDatabase(kernel: Kernel, source: Dumped, job: JobRow): Promise<JobOutcome | undefined> {
  const outcome = await outcomeOf(source.url, job.transactionId ?? '')
  if (outcome === 'in progress') return undefined
  if (outcome === 'aborted') return LOST
  await forgetFormerState(kernel, source)
  return outcome === 'committed' ? COMPLETED : UNKNOWN
}
