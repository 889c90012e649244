import { Failure } from '#kernel/errors.ts'
import { CONFIGURED, type Recurring } from '#kernel/jobs.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { deleteBackup, requestBackup } from './backups.ts'
import { endLost, queueAgain } from './lost-jobs.ts'
import type { BackupSources } from './sources.ts'
import { listSurplus } from './store.ts'

/** How often a process looks for the jobs of dead ones, milliseconds. Until they end, the clients of a restore stay frozen. */
const LOOK_EVERY = 5_000

/** Recurring work of backups: one entry a schedule, and the end of jobs whose process has died. */
export const backupSchedules = (kernel: Kernel, sources: BackupSources): readonly Recurring[] => [
  {
    name: 'fail-lost-backups',
    every: LOOK_EVERY,
    run: async () => {
      await queueAgain(kernel)
      await endLost(kernel, sources)
    },
  },
  ...Object.entries(kernel.config.backups.schedules).map(([schedule, { client, cron, keep }]) => ({
    name: `${CONFIGURED}${schedule}`,
    cron,
    run: async () => {
      await pruneSchedule(kernel, schedule, keep)
      await begin(kernel, sources, schedule, client)
    },
  })),
]

/** A run that finds the one before still running is left out: none pile up. */
async function begin(
  kernel: Kernel,
  sources: BackupSources,
  schedule: string,
  client: string,
): Promise<void> {
  try {
    await requestBackup(kernel, sources, { client_name: client, label: schedule, schedule })
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    kernel.log.error({ event: 'backup_skipped', schedule, client, code: error.code }, error.message)
  }
}

/** Deletes the completed backups of a schedule beyond the newest `keep`. One that cannot be deleted stays until the next run. */
async function pruneSchedule(kernel: Kernel, schedule: string, keep: number): Promise<void> {
  for (const { id } of await listSurplus(kernel.db, schedule, keep))
    await deleteBackup(kernel, id).catch((error: unknown) => {
      // A restore is reading it.
      if (error instanceof Failure && error.code === 'backup_in_use') return
      kernel.log.error(
        { event: 'backup_kept', schedule, job_id: id, error },
        'an old backup could not be deleted',
      )
    })
}
