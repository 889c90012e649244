import { CronExpressionParser } from 'cron-parser'
import { Failure } from '#kernel/errors.ts'
import { CONFIGURED, type RecurringTask } from '#kernel/jobs.ts'
import { atomically, emit, type Kernel } from '#kernel/kernel.ts'
import { deleteBackup } from './backups.ts'
import { beginNext, factsOf, outcomeOf } from './jobs/end.ts'
import { newJob, requestBackup } from './jobs/jobs.ts'
import { endLost, queueAgain } from './jobs/lost-jobs.ts'
import { insertJob } from './jobs/store.ts'
import { storeOf } from './location/location.ts'
import { keepSchedules, listCompleted, seeUntil } from './schedule-store.ts'
import type { BackupSources } from './sources.ts'

/** How often a process looks for the jobs of dead ones, milliseconds. Until they end, the clients of a restore stay frozen. */
const LOOK_EVERY = 5_000
/** The queue begins a run within two minutes. One that has not begun after this time will not, milliseconds. */
const LATE = 5 * 60_000

/** Recurring work of backups: one entry a schedule, the end of jobs whose process has died, and runs that were missed. */
export const backupSchedules = (kernel: Kernel, sources: BackupSources): readonly RecurringTask[] => [
  {
    name: 'fail-lost-backups',
    every: LOOK_EVERY,
    run: async () => {
      await queueAgain(kernel)
      await endLost(kernel, sources)
      await beginNext(kernel)
      await reportMissed(kernel, sources)
    },
  },
  ...Object.entries(kernel.config.backups.schedules).map(([schedule, { client, cron, keep }]) => ({
    name: `${CONFIGURED}${schedule}`,
    cron,
    run: async () => {
      await pruneSchedule(kernel, schedule, keep)
      await begin(kernel, sources, schedule, client)
      await seeUntil(kernel.db, schedule, kernel.now())
    },
  })),
]

/** A run that cannot begin is a failed job, never only a line of the log. */
async function begin(
  kernel: Kernel,
  sources: BackupSources,
  schedule: string,
  client: string,
): Promise<void> {
  try {
    await requestBackup(kernel, sources, { client_name: client, label: schedule, schedule })
  } catch (error) {
    const { message } = outcomeOf(error)
    kernel.log.error({ event: 'backup_failed', schedule, client, error }, message)
    await recordFailedRun(kernel, sources, { schedule, client, message })
  }
}

/** Runs at whose time no process reached the control database, which is back now. Of several in a row the last one is told. */
async function reportMissed(kernel: Kernel, sources: BackupSources): Promise<void> {
  const schedules = Object.entries(kernel.config.backups.schedules).map(([name, given]) => ({
    name,
    ...given,
  }))
  await keepSchedules(kernel.db, schedules, kernel.now())
  const before = new Date(kernel.now().getTime() - LATE)
  for (const { name, cron, client } of schedules) {
    const due = CronExpressionParser.parse(cron, { currentDate: before, tz: 'UTC' }).prev().toDate()
    const message = `The run of ${due.toISOString().slice(0, 16)}Z did not begin: no process ran, or the control database did not answer.`
    await atomically(kernel, async (kernel) => {
      if (!(await seeUntil(kernel.db, name, due))) return
      kernel.log.error({ event: 'backup_failed', schedule: name, client }, message)
      await recordFailedRun(kernel, sources, { schedule: name, client, message })
    })
  }
}

type FailedRun = { readonly schedule: string; readonly client: string; readonly message: string }

/** A run of a schedule that did not become a job: a failed one, and its event. */
function recordFailedRun(
  kernel: Kernel,
  { embedded }: Pick<BackupSources, 'embedded'>,
  { schedule, client, message }: FailedRun,
): Promise<void> {
  return atomically(kernel, async (kernel) => {
    const run = newJob(kernel, 'backup', client)
    const isArchive = embedded !== undefined && kernel.config.clients[client]?.url === undefined
    const job = await insertJob(kernel.db, {
      ...run,
      status: 'failed',
      label: schedule,
      schedule,
      format: isArchive ? 'archive' : 'dump',
      errorMessage: message,
      completedAt: run.createdAt,
    })
    await emit(kernel, 'backup_failed', { ...factsOf(job), error_message: message })
  })
}

/**
 * Deletes the completed backups of a schedule beyond the newest `keep` whose files are there. One that cannot be deleted stays until the next
 * run, which is made in any case.
 */
async function pruneSchedule(kernel: Kernel, schedule: string, keep: number): Promise<void> {
  try {
    let good = 0
    for (const job of await listCompleted(kernel.db, schedule)) {
      if (good < keep) good += (await isThere(kernel, job)) ? 1 : 0
      else await prune(kernel, schedule, job.id)
    }
  } catch (error) {
    kernel.log.error({ event: 'backup_kept', schedule, error }, 'old backups could not be looked up')
  }
}

async function isThere(
  kernel: Kernel,
  { location, sizeBytes }: { readonly location: string | null; readonly sizeBytes: string | null },
): Promise<boolean> {
  const file = location === null ? undefined : await storeOf(kernel, location).open(location)
  await file?.close()
  return file?.size === Number(sizeBytes)
}

async function prune(kernel: Kernel, schedule: string, id: string): Promise<void> {
  await deleteBackup(kernel, id).catch((error: unknown) => {
    // A restore is reading it.
    if (error instanceof Failure && error.code === 'backup_in_use') return
    kernel.log.error(
      { event: 'backup_kept', schedule, job_id: id, error },
      'an old backup could not be deleted',
    )
  })
}
