import { isConflict } from '#kernel/db/conflicts.ts'
import { Failure } from '#kernel/errors.ts'
import type { BackupJob } from '#kernel/events.ts'
import { atomically, emit, type Kernel } from '#kernel/kernel.ts'
import { redactText } from '#kernel/redact.ts'
import { discardFile } from '../backups.ts'
import { ProgramError } from '../dump/run-program.ts'
import { COMPLETE } from '../store.ts'
import { JobEnded } from './lease.ts'
import { ACTIVE_JOB_KEY, endJob, findJob, type JobRow, listNext, takeTurn } from './store.ts'

/** SQLSTATE data_corrupted: BASE_BACKUP has read a page whose checksum is wrong. */
const CORRUPTED = 'XX001'
const DAMAGED =
  'A file of the database is damaged: a checksum is wrong. Check the disk, keep the backups of before, and restore the last one.'

/** The sentence for the operator. It has no credentials: programs' output is redacted, and other errors are not repeated. */
export function outcomeOf(
  error: unknown,
): Pick<JobEnded, 'status' | 'message'> & { readonly isBug: boolean } {
  if (error instanceof JobEnded) return { status: error.status, message: error.message, isBug: false }
  const failed = { status: 'failed', isBug: false } as const
  if (error instanceof Failure)
    return { ...failed, message: [error.message, error.hint].filter(Boolean).join('. ') }
  if (error instanceof ProgramError) return { ...failed, message: error.message }
  const { code, syscall, message = 'unknown' } = Object(error) as NodeJS.ErrnoException // whatever was thrown
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return { ...failed, message: 'No space is left on the disk of the backups.' }
  if (code !== undefined && syscall !== undefined)
    return { ...failed, message: `A file of the backup cannot be used (${syscall}: ${code}).` }
  if (code === CORRUPTED) return { ...failed, message: DAMAGED }
  return { ...failed, message: `The job failed: ${redactText(message)}`, isBug: true }
}

/** A job in events. */
export const factsOf = ({ id, jobType, clientName, label, requestId }: JobRow): BackupJob => ({
  client: clientName,
  request_id: requestId,
  job_id: id,
  job_type: jobType as BackupJob['job_type'], // the table's check
  label,
})

export const COMPLETED = { status: 'completed', progressPct: 100, progressStage: 'done' } as const

export type JobOutcome = Omit<Parameters<typeof endJob>[2], 'completedAt'>

/**
 * Ends the row and emits the event in one transaction, and returns the row as it is then: it may have ended before. A backup that is not
 * complete, or whose row is gone, leaves no file.
 */
export async function finishJob(
  kernel: Kernel,
  job: JobRow,
  outcome: JobOutcome,
): Promise<JobRow | undefined> {
  const now = await atomically(kernel, async (kernel) => {
    const ended = await endJob(kernel.db, job.id, { ...outcome, completedAt: kernel.now() })
    // When the answer to the commit was lost, it may have ended well.
    if (ended === undefined) return findJob(kernel.db, job.id)
    const facts = factsOf(ended)
    if (ended.status === 'completed')
      await emit(kernel, 'backup_completed', { ...facts, size_bytes: Number(ended.sizeBytes ?? 0) })
    else await emit(kernel, 'backup_failed', { ...facts, error_message: ended.errorMessage ?? '' })
    return ended
  })
  if (now === undefined || !COMPLETE.includes(now.status)) await discardFile(kernel, job)
  await beginNext(kernel).catch((error: unknown) =>
    kernel.log.warn({ event: 'job_failed', job: 'run-backup', error }, 'a waiting backup was not queued yet'),
  )
  return now
}

/** Queues the jobs that waited until another job of their client had ended. */
export async function beginNext(kernel: Kernel): Promise<void> {
  for (const id of await listNext(kernel.db)) {
    try {
      await atomically(kernel, async (kernel) => {
        if (await takeTurn(kernel.db, id, kernel.now()))
          await kernel.jobs.enqueue(kernel.db, 'run-backup', { job: id })
      })
    } catch (error) {
      // Another job of the client was faster.
      if (!isConflict(error, ACTIVE_JOB_KEY)) throw error
    }
  }
}
