import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { isOwn, type JobRow, LEASE, leaseEnd } from './store.ts'

/**
 * After a restore, or in a copy of a control database, the jobs of before are those of another installation: its backups are foreign, and
 * its running jobs do not run here. The backup that this installation was restored from stays completed.
 */
export async function disownJobs({ db, now }: Pick<Kernel, 'db' | 'now'>): Promise<void> {
  await sql`
    update service.backup_job set
      status = case when status = 'completed' then 'foreign' else 'failed' end,
      error_message = case when status = 'completed' then error_message else ${INTERRUPTED} end,
      completed_at = coalesce(completed_at, ${now()}), updated_at = ${now()}, lease_until = null
    where installation_id is distinct from (select id from service.installation)
      and (status in ('pending', 'running') or (job_type = 'backup' and status = 'completed'
        and id is distinct from (select restored_backup from service.installation)))`.execute(db)
}

const INTERRUPTED = 'The service was restored or copied while the job ran.'

/** Jobs whose process has died. A job that waits for the queue has no lease. */
export const listLost = (db: Db, now: Date): Promise<JobRow[]> =>
  db
    .selectFrom('backupJob')
    .selectAll()
    .where('status', 'in', ['pending', 'running'])
    .where(isOver(now))
    .where(isOwn)
    .execute()

/** A lease that is longer than any was written before the clock of the database was set back, and has not been renewed since. */
const isOver = (now: Date) =>
  sql<boolean>`(lease_until < ${now} or lease_until > ${new Date(now.getTime() + 2 * LEASE)})`

/** Jobs that wait for a process since that time, or longer. */
export const listPending = (db: Db, since: Date): Promise<Pick<JobRow, 'id' | 'clientName'>[]> =>
  db
    .selectFrom('backupJob')
    .select(['id', 'clientName'])
    .where('status', '=', 'pending')
    .where('leaseUntil', 'is', null)
    .where('updatedAt', '<', since)
    .where('waits', '=', false)
    .where(isOwn)
    .execute()

/** Takes the lease of a lost job: false when another process has it, or the job has ended. */
export async function takeLost(db: Db, id: string, now: Date): Promise<boolean> {
  const taken = await db
    .updateTable('backupJob')
    .set({ leaseUntil: leaseEnd(now) })
    .where('id', '=', id)
    .where('status', 'in', ['pending', 'running'])
    .where(isOver(now))
    .returning('id')
    .executeTakeFirst()
  return taken !== undefined
}

/** Ends the lease of a lost job at that time, so that it is taken again. */
export async function leaveLost(db: Db, id: string, leaseUntil: Date): Promise<void> {
  await db
    .updateTable('backupJob')
    .set({ leaseUntil })
    .where('id', '=', id)
    .where('status', '=', 'running')
    .execute()
}
