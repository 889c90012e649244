import { databaseOf } from '#databases/clients/restoring.ts'
import { actAsOperator } from '#identity/act.ts'
import { tell, untold } from '#identity/tell.ts'
import { isConflict } from '#kernel/db/conflicts.ts'
import type { BackupJob } from '#kernel/events.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { expectEveryRight, expectRights, pastPolicies } from '../../caller/expected-rights.ts'
import { fail } from '../../errors.ts'
import { requireClient } from '../../existing-clients.ts'
import { findBackup } from '../backups.ts'
import { locationOf } from '../location/location.ts'
import { type BackupSources, programFor, sourceOf } from '../sources.ts'
import { holdBackup, lockBackup } from '../store.ts'
import { endLost } from './lost-jobs.ts'
import {
  ACTIVE_JOB_KEY,
  cancelWaitingJobs,
  findJob,
  insertJob,
  type JobRow,
  leaseEnd,
  lockRestoresOf,
  requestCancel,
  restoredBy,
  WAITING_JOB_KEY,
} from './store.ts'

type BackupRequest = {
  readonly client_name: string
  readonly label?: string | null
  readonly schedule?: string
  /** The file to write, instead of one in `backups.location`. */
  readonly output?: string
  /** The caller runs the job itself. */
  readonly isRunHere?: boolean
}

/** Adds a job that backs up a client. Throws if the job could not run: unknown client, no pg_dump, another job of the client. */
export async function requestBackup(
  kernel: Kernel,
  sources: BackupSources,
  { client_name: clientName, label = null, schedule, output, isRunHere = false }: BackupRequest,
): Promise<JobRow> {
  const source = await sourceOf(kernel, sources, clientName)
  if (source.format === 'dump') await programFor(kernel, sources, 'pg_dump', source.major)
  const job = newJob(kernel, 'backup', clientName)
  const { format } = source
  const location = output ?? locationOf(kernel.config, fileName(job, format))
  return addJob(kernel, sources, { ...job, label, format, location, schedule: schedule ?? null }, isRunHere)
}

export function newJob({ origin, now, random }: Kernel, jobType: BackupJob['job_type'], clientName: string) {
  const createdAt = now()
  const id = uuidv7(createdAt, random)
  const requestId = origin.requestId ?? null
  return { id, jobType, status: 'pending', clientName, requestId, createdAt, updatedAt: createdAt }
}

/** `default-20260131T033000Z-0198….gatehouse` */
const fileName = (
  { id, clientName, createdAt }: ReturnType<typeof newJob>,
  format: JobRow['format'],
): string =>
  `${clientName}-${createdAt.toISOString().slice(0, 19).replace(/[-:]/g, '')}Z-${id}.${format === 'dump' ? 'dump' : 'gatehouse'}`

type NewRow = Parameters<typeof insertJob>[1]

/** One job of a client at a time: a second one is refused, or waits if it is a schedule's, one for each schedule. So none pile up. */
async function addJob(
  kernel: Kernel,
  sources: BackupSources,
  row: NewRow,
  isRunHere: boolean,
  expect: (kernel: Kernel) => Promise<void> = async () => {},
): Promise<JobRow> {
  await endLost(kernel, sources)
  try {
    return await actAsOperator(kernel, async (kernel) => {
      await requireClient(kernel, sources.clients, row.clientName)
      await expect(kernel)
      if (row.sourceId && !(await holdBackup(kernel.db, row.sourceId))) throw fail('backup_not_found')
      await requireSoleRestore(kernel, row)
      const leaseUntil = isRunHere ? leaseEnd(kernel.now()) : null
      const job = await insertJob(kernel.db, { ...row, leaseUntil })
      const action = job.jobType === 'backup' ? 'backup.requested' : 'restore.requested'
      const details = job.sourceId === null ? {} : { backup_id: job.sourceId }
      await tell(kernel, action, { ...targetOf(job), details })
      if (!isRunHere && !job.waits) await kernel.jobs.enqueue(kernel.db, 'run-backup', { job: job.id })
      return job
    })
  } catch (error) {
    if (isConflict(error, WAITING_JOB_KEY)) throw fail('backup_job_active', { message: STILL_WAITS })
    if (!isConflict(error, ACTIVE_JOB_KEY)) throw error
    if (row.schedule == null) throw fail('backup_job_active')
    return addJob(kernel, sources, { ...row, waits: true }, isRunHere, expect)
  }
}

const STILL_WAITS = 'The run before still waits for its turn'

/** Two restores of one database would wait for each other's locks. */
async function requireSoleRestore({ db }: Kernel, { clientName, database }: NewRow): Promise<void> {
  if (database == null) return
  await lockRestoresOf(db, database)
  const restored = await restoredBy(db, database)
  if (restored === undefined || restored === clientName) return
  throw fail('backup_job_active', {
    message: `A restore of the client ${restored}, which has the same database, already waits or runs`,
  })
}

const targetOf = ({ id, clientName }: Pick<JobRow, 'id' | 'clientName'>) => ({
  targetId: id,
  clientName,
})

/** `confirm`: the client's name again, or true. */
type RestoreRequest = { readonly client_name: string; readonly confirm: string | boolean }

/** Adds a job that replaces the data of a client by that of a backup. */
export async function requestRestore(
  kernel: Kernel,
  sources: BackupSources,
  backupId: string,
  { client_name: clientName, confirm }: RestoreRequest,
): Promise<JobRow> {
  if (confirm !== true && confirm !== clientName) throw fail('restore_not_confirmed')
  const backup = await findBackup(kernel, backupId)
  if (backup.format === 'archive') throw fail('restore_needs_command')
  const source = await sourceOf(kernel, sources, clientName)
  if (source.format === 'archive') throw fail('restore_needs_command')
  if ((await sources.clients.locate(source.client)).isLogging) throw fail('restore_refused')
  await programFor(kernel, sources, 'pg_restore', source.major)
  const database = (await databaseOf(source.client).catch(() => undefined)) ?? null
  const { id: sourceId, label, format, location, size } = backup
  const job = { ...newJob(kernel, 'restore', clientName), label, format, location, sizeBytes: String(size) }
  return addJob(kernel, sources, { ...job, sourceId, database }, false, async (kernel) => {
    await expectEveryRight(kernel, clientName)
    await expectRights(
      kernel,
      backup.clientName,
      await pastPolicies(sources.clients, backup.clientName, ['gateway.read']),
    )
  })
}

export async function findBackupJob(kernel: Pick<Kernel, 'db'>, id: string): Promise<JobRow> {
  const job = await findJob(kernel.db, id)
  if (job === undefined) throw fail('backup_not_found')
  return job
}

/** A waiting job does not run; a running one ends within seconds, and leaves nothing. */
export function cancelJob(kernel: Kernel, id: string): Promise<JobRow> {
  return actAsOperator(kernel, async (kernel) => {
    await lockBackup(kernel.db, id)
    const before = await findBackupJob(kernel, id)
    const job = await requestCancel(kernel.db, id, kernel.now())
    if (job === undefined) throw fail('backup_job_ended')
    await (before.cancelRequested
      ? untold(kernel, 'it was requested before')
      : tell(kernel, 'backup.cancelled', targetOf(job)))
    return job
  })
}

/** For a client that was removed: another client of its name may be another database. */
export const cancelJobsOf = ({ db, now }: Pick<Kernel, 'db' | 'now'>, clientName: string): Promise<void> =>
  cancelWaitingJobs(db, clientName, { reason: 'Its client was removed.', now: now() })

/** A job in answers (gateway.md 15). */
export const recordOf = (job: JobRow) => ({
  id: job.id,
  job_type: job.jobType as BackupJob['job_type'], // the table's check
  status: job.status as 'pending', // the table's check; the schema has them all
  client_name: job.clientName,
  format: job.format as 'dump', // the table's check; the schema has both
  label: job.label,
  location: job.location,
  size_bytes: job.sizeBytes === null ? null : Number(job.sizeBytes),
  progress_pct: job.progressPct,
  progress_stage: job.progressStage,
  error_message: job.errorMessage,
  created_at: job.createdAt,
  updated_at: job.updatedAt,
  completed_at: job.completedAt,
})
