import { isConflict } from '#kernel/db/conflicts.ts'
import { atomically, type Kernel } from '#kernel/kernel.ts'
import { listNext, takeTurn } from './schedule-store.ts'
import { ACTIVE_JOB_KEY } from './store.ts'

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
