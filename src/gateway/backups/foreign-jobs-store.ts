import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { JobRow } from './store.ts'

/** Whether this installation has made the job. The files of others are never removed: they have rows of their own for them. */
export async function isOwnJob(db: Db, { installationId }: JobRow): Promise<boolean> {
  const installation = await db.selectFrom('installation').select('id').executeTakeFirst()
  return installationId === (installation?.id ?? null)
}

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
