import { Command } from 'commander'
import { prepareLogging } from '#gateway/management/audit.ts'
import { migrate } from '#kernel/db/migrate.ts'
import { secureRandom } from '#kernel/random.ts'
import { loggingOwner, openDatabases, READER } from '../control.ts'
import { contextOf } from './context.ts'
import { terminal } from './terminal.ts'

export function migrateCommand(): Command {
  return new Command('migrate')
    .description('bring the control database and the log tables to the schema of this version')
    .action(async (_options, command: Command) => {
      const { config, secrets } = contextOf(command)
      const withoutMigrating = { ...config, database: { ...config.database, migrate: false } }
      const databases = await openDatabases({
        config: withoutMigrating,
        secrets,
        random: secureRandom,
        report: () => {},
        join: true,
      })
      try {
        const applied = await migrate(databases.controlUrl)
        for (const name of applied) terminal.say(`applied ${name}`)
        const owner = loggingOwner(config, databases)
        if (owner !== undefined)
          await prepareLogging(owner, databases.logging === undefined ? undefined : READER)
        terminal.say(applied.length === 0 ? 'The schema is up to date.' : 'Done.')
      } finally {
        await databases.stop()
      }
    })
}
