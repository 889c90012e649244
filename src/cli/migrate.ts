import { Command, Option } from 'commander'
import type { Mismatch } from '#kernel/db/installation.ts'
import { secureRandom } from '#kernel/random.ts'
import { dropSealed } from '#startup/lost-secret.ts'
import { openDatabases, openLogging } from '#startup/open-databases.ts'
import { installingContext } from './context.ts'
import { expectConsent, terminal } from './terminal.ts'

type Options = { asCopy?: boolean; newSecret?: boolean }

export function migrateCommand(): Command {
  return new Command('migrate')
    .description("migrate the control database and the log tables to this version's schema")
    .option('--as-copy', 'turn a copied control database into a separate installation')
    .addOption(
      new Option(
        '--new-secret',
        "continue without the installation's previous secret: drops everything encrypted with it, and lists it",
      ).conflicts('asCopy'),
    )
    .action(async (options: Options, command: Command) => {
      const { newSecret = false, asCopy = false } = options
      if (newSecret) await expectConsent(NEW_SECRET)
      if (asCopy) await expectConsent(AS_COPY)
      const context = await installingContext(command, takeOverOf(options))
      const { config, secrets } = context
      const databases = await openDatabases({
        ...context,
        config: { ...config, database: { ...config.database, migrate: true } },
        random: secureRandom,
        report: () => {},
        join: true,
        createsMissing: true,
        takeOver: takeOverOf(options),
      })
      try {
        for (const repair of databases.repairs) terminal.warn(repair)
        for (const name of databases.applied) terminal.say(`applied ${name}`)
        if (newSecret) for (const line of await dropSealed(databases.controlUrl, secrets)) terminal.say(line)
        await openLogging(config, databases)
        terminal.say(databases.applied.length === 0 ? 'The schema is up to date.' : 'Done.')
      } finally {
        await databases.stop()
      }
    })
}

const NEW_SECRET =
  'Deletes all data that is encrypted with the lost secret: registered clients and queued mails.'
const AS_COPY =
  'The control database becomes a separate installation, with empty databases default and logging, and without sessions, mailed links and codes, trusted browsers and queued mails.'

const takeOverOf = ({ asCopy, newSecret }: Options): Mismatch | undefined =>
  asCopy === true ? 'copy' : newSecret === true ? 'foreign' : undefined
