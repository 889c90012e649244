import { type Insertable, type Selectable, sql, type Updateable } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { BackupJobTable } from '#kernel/db/tables.ts'
import type { Page } from '../../pagination.ts'

export type JobRow = Selectable<BackupJobTable>

export const JOB_TYPES = ['backup', 'restore'] as const
export const JOB_STATUSES = ['pending', 'running', 'completed', 'failed', 'cancelled', 'foreign'] as const
export type JobStatus = (typeof JOB_STATUSES)[number]

/** None in a database that was not opened as an installation. */
const INSTALLATION = sql`select id from service.installation`
/** Of the jobs: those of this installation, whose files it may remove. A copy has the jobs of its original too. */
export const isOwn = () => sql<boolean>`installation_id is not distinct from (${INSTALLATION})`

/** One job of a client waits for a process or runs at a time, besides those that wait for their turn. */
export const ACTIVE_JOB_KEY = 'backup_job_active'
/** One run of a schedule waits for its turn. */
export const WAITING_JOB_KEY = 'backup_job_waiting'

export const insertJob = (db: Db, row: Insertable<BackupJobTable>): Promise<JobRow> =>
  db
    .insertInto('backupJob')
    .values({ ...row, installationId: sql<string | null>`(${INSTALLATION})` })
    .returningAll()
    .executeTakeFirstOrThrow()

type JobFilter = {
  readonly client_name?: string
  readonly status?: JobStatus
  readonly job_type?: (typeof JOB_TYPES)[number]
}

/** A page of jobs, newest first, and the number of all that match. */
export async function listJobs(
  db: Db,
  { client_name, status, job_type }: JobFilter,
  { limit, offset }: Page,
): Promise<{ readonly jobs: JobRow[]; readonly total: number }> {
  let matching = db.selectFrom('backupJob')
  if (client_name !== undefined) matching = matching.where('clientName', '=', client_name)
  if (status !== undefined) matching = matching.where('status', '=', status)
  if (job_type !== undefined) matching = matching.where('jobType', '=', job_type)
  const [jobs, counted] = await Promise.all([
    matching.selectAll().orderBy('id', 'desc').limit(limit).offset(offset).execute(),
    matching.select((eb) => eb.fn.countAll().as('total')).executeTakeFirstOrThrow(),
  ])
  return { jobs, total: Number(counted.total) }
}

export const findJob = (db: Db, id: string): Promise<JobRow | undefined> =>
  db.selectFrom('backupJob').selectAll().where('id', '=', id).executeTakeFirst()

/** A process that does not renew its lease for this long is dead, milliseconds. */
export const LEASE = 30_000

export const leaseEnd = (now: Date): Date => new Date(now.getTime() + LEASE)

/** The row, if it waited for a process: one process has it from now on. */
export const claimJob = (db: Db, id: string, now: Date): Promise<JobRow | undefined> =>
  db
    .updateTable('backupJob')
    .set({ status: 'running', updatedAt: now, leaseUntil: leaseEnd(now) })
    .where('id', '=', id)
    .where('status', '=', 'pending')
    .where('waits', '=', false)
    .where(isOwn)
    .returningAll()
    .executeTakeFirst()

export type Progress = { readonly progressPct: number; readonly progressStage: string }

/** Renews the lease and writes the progress; undefined when the job does not run any more. */
export const renewJob = (
  db: Db,
  id: string,
  now: Date,
  progress: Progress,
): Promise<Pick<JobRow, 'cancelRequested'> | undefined> =>
  db
    .updateTable('backupJob')
    .set({ updatedAt: now, leaseUntil: leaseEnd(now), ...progress })
    .where('id', '=', id)
    .where('status', '=', 'running')
    .returning('cancelRequested')
    .executeTakeFirst()

/** Until the transaction ends, others that add a restore of this database wait. */
export async function lockRestoresOf(db: Db, database: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`gatehouse restore ${database}`}, 0))`.execute(db)
}

/** The client of a restore of this database that waits or runs. Call `lockRestoresOf` before. */
export async function restoredBy(db: Db, database: string): Promise<string | undefined> {
  const found = await db
    .selectFrom('backupJob')
    .select('clientName')
    .where('jobType', '=', 'restore')
    .where('status', 'in', ['pending', 'running'])
    .where('database', '=', database)
    .executeTakeFirst()
  return found?.clientName
}

/** Notes the database of a running restore, from which on other clients of the database are frozen too. */
export async function setDatabase(db: Db, id: string, database: string | undefined): Promise<void> {
  await db
    .updateTable('backupJob')
    .set({ database: database ?? null })
    .where('id', '=', id)
    .where('status', '=', 'running')
    .execute()
}

/** Notes the transaction of a running restore. Throws if it does not run any more: then it must not commit. */
export async function setTransaction(db: Db, id: string, transactionId: string): Promise<void> {
  await db
    .updateTable('backupJob')
    .set({ transactionId })
    .where('id', '=', id)
    .where('status', '=', 'running')
    .returning('id')
    .executeTakeFirstOrThrow()
}

/** Ends a running job; undefined when another process has ended it. */
export const endJob = (
  db: Db,
  id: string,
  end: Updateable<BackupJobTable> & { readonly status: JobStatus; readonly completedAt: Date },
): Promise<JobRow | undefined> =>
  db
    .updateTable('backupJob')
    .set({ ...end, updatedAt: end.completedAt, leaseUntil: null })
    .where('id', '=', id)
    .where('status', 'in', ['pending', 'running'])
    .returningAll()
    .executeTakeFirst()

/** A waiting job is cancelled at once; a running one is asked to end. Undefined when it is neither. */
export const requestCancel = (db: Db, id: string, now: Date): Promise<JobRow | undefined> =>
  db
    .updateTable('backupJob')
    .set((eb) => ({
      cancelRequested: true,
      status: sql<JobStatus>`case when status = 'pending' then 'cancelled' else status end`,
      completedAt: eb.case().when('status', '=', 'pending').then(now).else(eb.ref('completedAt')).end(),
      updatedAt: now,
    }))
    .where('id', '=', id)
    .where('status', 'in', ['pending', 'running'])
    .returningAll()
    .executeTakeFirst()

/** Cancels the jobs of a client that wait. */
export async function cancelWaitingJobs(
  db: Db,
  clientName: string,
  { reason, now }: { readonly reason: string; readonly now: Date },
): Promise<void> {
  await db
    .updateTable('backupJob')
    .set({ status: 'cancelled', errorMessage: reason, completedAt: now, updatedAt: now, leaseUntil: null })
    .where('clientName', '=', clientName)
    .where('status', '=', 'pending')
    .execute()
}

/** The jobs whose turn it is: of each client without another job the one that has waited for longest. */
export async function listNext(db: Db): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    select distinct on (client_name) id from service.backup_job as job
     where status = 'pending' and waits and ${isOwn()} and not exists (
       select from service.backup_job as other
        where other.client_name = job.client_name and other.status in ('pending', 'running') and not other.waits
     ) order by client_name, id`.execute(db)
  return rows.map(({ id }) => id)
}

/** False when the job does not wait any more. Conflicts with another job of the client that has begun meanwhile. */
export async function takeTurn(db: Db, id: string, now: Date): Promise<boolean> {
  const taken = await db
    .updateTable('backupJob')
    .set({ waits: false, updatedAt: now })
    .where('id', '=', id)
    .where('status', '=', 'pending')
    .where('waits', '=', true)
    .returning('id')
    .executeTakeFirst()
  return taken !== undefined
}

/** Deletes a job that neither waits nor runs, unless a restore is reading it. Call `lockBackup` before. */
export const deleteEndedJob = (db: Db, id: string): Promise<JobRow | undefined> =>
  db
    .deleteFrom('backupJob')
    .where('id', '=', id)
    .where('status', 'not in', ['pending', 'running'])
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('backupJob as reader')
            .select('reader.id')
            .where('reader.sourceId', '=', id)
            .where('reader.status', 'in', ['pending', 'running']),
        ),
      ),
    )
    .returningAll()
    .executeTakeFirst()
