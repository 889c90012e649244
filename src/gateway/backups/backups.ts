import { actAsOperator } from '#identity/act.ts'
import { tell } from '#identity/tell.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import { deleteEndedJob, findJob, type JobRow } from './jobs/store.ts'
import { storeOf } from './location/location.ts'
import { type Backup, backupOf, COMPLETE, isOfAnother, isOwnJob, lockBackup } from './store.ts'

export async function findBackup({ db }: Pick<Kernel, 'db'>, id: string): Promise<Backup> {
  const job = await findJob(db, id)
  if (job === undefined) throw fail('backup_not_found')
  const backup = backupOf(job)
  if (backup === undefined) throw fail('backup_not_completed')
  return backup
}

/**
 * Deletes a job and, if it is a backup of this installation, its file. Downloads of it break off. A file that cannot be removed keeps its
 * job.
 */
export async function deleteBackup(kernel: Kernel, id: string): Promise<void> {
  const job = await actAsOperator(kernel, async (kernel) => {
    await lockBackup(kernel.db, id)
    const deleted = await deleteEndedJob(kernel.db, id)
    if (deleted === undefined)
      throw fail((await findJob(kernel.db, id)) === undefined ? 'backup_not_found' : 'backup_in_use')
    await tell(kernel, 'backup.deleted', { targetId: id, clientName: deleted.clientName })
    if (deleted.status === 'completed') await removeFile(kernel, deleted)
    return deleted
  })
  if (!COMPLETE.includes(job.status)) await discardFile(kernel, job)
}

/** A file that `--output` named again, after the former one was moved away, is the later backup's. */
async function removeFile(kernel: Kernel, job: JobRow): Promise<void> {
  const location = await ownFile(kernel, job)
  if (location === undefined || (await isOfAnother(kernel.db, location, job.id, '>'))) return
  await storeOf(kernel, location).remove(location)
}

/** Removes what an unfinished job has left. A file that `--output` named for another backup too is left to that one. */
export async function discardFile(kernel: Kernel, job: JobRow): Promise<void> {
  const location = await ownFile(kernel, job)
  if (location === undefined || (await isOfAnother(kernel.db, location, job.id))) return
  await storeOf(kernel, location)
    .discard(location)
    .catch((error: unknown) =>
      kernel.log.warn(
        { event: 'backup_left', error },
        `the unfinished backup ${location} could not be removed`,
      ),
    )
}

/** The location that a job of this installation writes to. */
async function ownFile({ db }: Kernel, job: JobRow): Promise<string | undefined> {
  if (job.jobType !== 'backup' || job.location === null) return undefined
  return (await isOwnJob(db, job)) ? job.location : undefined
}
