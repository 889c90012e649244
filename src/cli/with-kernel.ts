import type { Command } from 'commander'
import { CLI } from '#kernel/audit/origin.ts'
import { clockOf, connectOnce } from '#kernel/db/connect.ts'
import { readOnly } from '#kernel/db/session-settings.ts'
import { type Kernel, withOrigin } from '#kernel/kernel.ts'
import { createLog } from '#kernel/log.ts'
import { secureRandom } from '#kernel/random.ts'
import { expectSchema, startKernel } from '#kernel/start.ts'
import { openDatabases, type ServiceDatabases } from '#startup/open-databases.ts'
import { type Context, contextOf } from './context.ts'

/** Runs a command's work next to a running service. If the embedded server is stopped, it runs for the duration of the command. */
export async function withKernel<T>(
  command: Command,
  work: (kernel: Kernel, databases: ServiceDatabases) => Promise<T>,
): Promise<T> {
  const context = contextOf(command)
  const { config, secrets } = context
  return withDatabases(context, async (databases) => {
    // Log errors only: the rest of the log would mix with the command's output.
    const log = createLog({ level: 'error', format: 'pretty' })
    const started = await startKernel({ config, controlUrl: databases.controlUrl, secrets, log })
    try {
      return await work(withOrigin(started.kernel, CLI), databases)
    } finally {
      await started.close()
    }
  })
}

/** The part of the kernel that read-only commands may use. */
type ReadOnlyKernel = Pick<Kernel, 'db' | 'now'>

/** Runs a command that only reads, on a read-only session: the database server rejects writes. */
export async function withReadOnlyKernel<T>(
  command: Command,
  work: (kernel: ReadOnlyKernel, databases: ServiceDatabases) => Promise<T>,
): Promise<T> {
  return withDatabases(contextOf(command), async (databases) => {
    const control = connectOnce(readOnly(databases.controlUrl))
    try {
      await expectSchema(control.pool)
      return await work({ db: control.db, now: await clockOf(control.db) }, databases)
    } finally {
      await control.close()
    }
  })
}

/** Opens the databases for a command that makes none: those of a running service, or the embedded server for as long as it takes. */
export async function withDatabases<T>(
  context: Context,
  work: (databases: ServiceDatabases) => Promise<T>,
): Promise<T> {
  const databases = await openDatabases({
    ...context,
    random: secureRandom,
    report: () => {},
    join: true,
    createsMissing: false,
  })
  try {
    return await work(databases)
  } finally {
    await databases.stop()
  }
}
