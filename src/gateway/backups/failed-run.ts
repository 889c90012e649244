import { atomically, emit, type Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { factsOf } from './job-facts.ts'
import type { BackupSources } from './sources.ts'
import { insertJob } from './store.ts'

type FailedRun = { readonly schedule: string; readonly client: string; readonly message: string }

/** A run of a schedule that did not become a job: a failed one, and its event. */
export function recordFailedRun(
  kernel: Kernel,
  { embedded }: Pick<BackupSources, 'embedded'>,
  { schedule, client, message }: FailedRun,
): Promise<void> {
  return atomically(kernel, async (kernel) => {
    const now = kernel.now()
    const isArchive = embedded !== undefined && kernel.config.clients[client]?.url === undefined
    const job = await insertJob(kernel.db, {
      id: uuidv7(now, kernel.random),
      jobType: 'backup',
      status: 'failed',
      clientName: client,
      label: schedule,
      schedule,
      format: isArchive ? 'archive' : 'dump',
      errorMessage: message,
      createdAt: now,
      updatedAt: now,
      completedAt: now,
    })
    await emit(kernel, 'backup_failed', { ...factsOf(job), error_message: message })
  })
}
