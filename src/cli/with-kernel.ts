import type { Command } from 'commander'
import { clockOf, connectOnce } from '#kernel/db/connect.ts'
import { readOnly } from '#kernel/db/session.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { createLog } from '#kernel/log.ts'
import { secureRandom } from '#kernel/random.ts'
import { expectSchema, startKernel } from '#kernel/start.ts'
import { type Databases, openDatabases } from '../control.ts'
import { type Context, contextOf } from './context.ts'

/** Runs a command's work beside a running service, or with the embedded server started for as long as it takes. */
export function withKernel<T>(
  command: Command,
  work: (kernel: Kernel, databases: Databases) => Promise<T>,
): Promise<T> {
  return withDatabases(command, async ({ config, secrets }, databases) => {
    // A command's output is its answer; of the log only what went wrong is wanted.
    const log = createLog({ level: 'error', format: 'pretty' })
    const started = await startKernel({ config, controlUrl: databases.controlUrl, secrets, log })
    try {
      return await work(started.kernel, databases)
    } finally {
      await started.close()
    }
  })
}

/** What a command that only reads may use. */
export type Reading = Pick<Kernel, 'db' | 'now'>

/** The same for a command that only reads. The server itself sees to it that nothing is written. */
export function withReading<T>(
  command: Command,
  work: (kernel: Reading, databases: Databases) => Promise<T>,
): Promise<T> {
  return withDatabases(command, async (_context, databases) => {
    const control = connectOnce(readOnly(databases.controlUrl))
    try {
      await expectSchema(control.pool)
      return await work({ db: control.db, now: await clockOf(control.db) }, databases)
    } finally {
      await control.close()
    }
  })
}

async function withDatabases<T>(
  command: Command,
  work: (context: Context, databases: Databases) => Promise<T>,
): Promise<T> {
  const context = contextOf(command)
  const databases = await openDatabases({
    ...context,
    random: secureRandom,
    report: () => {},
    join: true,
    makes: false,
  })
  try {
    return await work(context, databases)
  } finally {
    await databases.stop()
  }
}
