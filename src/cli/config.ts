import { Command } from 'commander'
import { stringify } from 'yaml'
import { maskedConfig } from '#kernel/config/config.ts'
import { configOf } from './context.ts'
import { terminal } from './terminal.ts'

export function configCommand(): Command {
  const config = new Command('config').description('look at the configuration')
  config
    .command('check')
    .description('say whether the configuration is right, and everything that is wrong with it')
    .action((_options, command: Command) => {
      configOf(command)
      terminal.say('The configuration is right.')
    })
  config
    .command('show')
    .description('every setting as it holds now, secrets masked')
    .option('--json', 'as JSON')
    .action(({ json }: { json?: boolean }, command: Command) => {
      const shown = maskedConfig(configOf(command))
      terminal.say(json === true ? JSON.stringify(shown, null, 2) : stringify(shown).trimEnd())
    })
  return config
}
