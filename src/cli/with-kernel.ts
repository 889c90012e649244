import type { Command } from 'commander'
import type { Kernel } from '#kernel/kernel.ts'
import { createLog } from '#kernel/log.ts'
import { secureRandom } from '#kernel/random.ts'
import { startKernel } from '#kernel/start.ts'
import { type Databases, openDatabases } from '../control.ts'
import { contextOf } from './context.ts'

/** Runs a command's work beside a running service, or with the embedded server started for as long as it takes. */
export async function withKernel<T>(
  command: Command,
  work: (kernel: Kernel, databases: Databases) => Promise<T>,
): Promise<T> {
  const { config, secrets } = contextOf(command)
  // A command's output is its answer; of the log only what went wrong is wanted.
  const log = createLog({ level: 'error', format: 'pretty' })
  const databases = await openDatabases({
    config,
    secrets,
    random: secureRandom,
    report: () => {},
    join: true,
  })
  try {
    const started = await startKernel({ config, controlUrl: databases.controlUrl, secrets, log })
    try {
      return await work(started.kernel, databases)
    } finally {
      await started.close()
    }
  } finally {
    await databases.stop()
  }
}
