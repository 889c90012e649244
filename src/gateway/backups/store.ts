import type { Db } from '#kernel/db/connect.ts'
import type { JobRow, JobStatus } from './jobs/store.ts'

/** A complete backup. Its row is that of the job that has made it. */
export type Backup = Pick<JobRow, 'id' | 'clientName' | 'label' | 'format'> & {
  readonly location: string
  readonly size: number
  readonly sha256: string
}

/** Statuses of a backup whose file is complete. */
export const COMPLETE: readonly string[] = ['completed', 'foreign'] satisfies JobStatus[]

/** The backup that a job has made; undefined when it is not complete, or a restore. */
export function backupOf(job: JobRow): Backup | undefined {
  const { id, clientName, label, format, location } = job
  if (job.jobType !== 'backup' || !COMPLETE.includes(job.status) || location === null) return undefined
  return { id, clientName, label, format, location, size: Number(job.sizeBytes), sha256: job.sha256 ?? '' }
}

/** Whether the backup is still there, for a download that is under way. */
export async function isComplete(db: Db, id: string): Promise<boolean> {
  const found = await db
    .selectFrom('backupJob')
    .select('id')
    .where('id', '=', id)
    .where('status', 'in', COMPLETE)
    .executeTakeFirst()
  return found !== undefined
}

/** Whether this installation has made the job. The files of others are never removed: they have rows of their own for them. */
export async function isOwnJob(db: Db, { installationId }: JobRow): Promise<boolean> {
  const installation = await db.selectFrom('installation').select('id').executeTakeFirst()
  return installationId === (installation?.id ?? null)
}

/** Whether the backup is there. Its deletion waits until the transaction ends. */
export async function holdBackup(db: Db, id: string): Promise<boolean> {
  const row = await db
    .selectFrom('backupJob')
    .select('id')
    .where('id', '=', id)
    .forKeyShare()
    .executeTakeFirst()
  return row !== undefined
}

/** Waits for transactions that hold the backup (`holdBackup`), so that the next statement sees what they have written. */
export async function lockBackup(db: Db, id: string): Promise<void> {
  await db.selectFrom('backupJob').select('id').where('id', '=', id).forUpdate().execute()
}

/** Whether another backup has this location, or a later one (`>`), and is complete or may become so. */
export async function isOfAnother(
  db: Db,
  location: string,
  id: string,
  operator: '!=' | '>' = '!=',
): Promise<boolean> {
  const found = await db
    .selectFrom('backupJob')
    .select('id')
    .where('location', '=', location)
    .where('id', operator, id)
    .where('jobType', '=', 'backup')
    .where('status', 'in', ['pending', 'running', ...COMPLETE])
    .executeTakeFirst()
  return found !== undefined
}
