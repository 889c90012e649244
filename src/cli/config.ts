import { Command } from 'commander'
import { stringify } from 'yaml'
import { listSettings, maskedConfig } from '#kernel/config/config.ts'
import { configOf } from './context.ts'
import { startProblems } from './start-checks.ts'
import { printList, terminal } from './terminal.ts'

export function configCommand(): Command {
  const config = new Command('config').description('check or print the configuration')
  config
    .command('check')
    .description('report every problem that stops serve: settings, secrets, data folder, port and databases')
    .option('--offline', 'check settings and secrets only, not the port or any database')
    .action(async ({ offline = false }: { offline?: boolean }, command: Command) => {
      const config = configOf(command)
      const problems = await startProblems(config, { offline })
      for (const problem of problems) terminal.warn(problem)
      if (problems.length > 0) process.exitCode = 1
      else terminal.say('The configuration is valid.')
    })
  config
    .command('show')
    .description('print every setting with its current value; secrets are masked')
    .option(
      '--sources',
      'as a list, with the source of each setting: a line of the file, a variable or an option',
    )
    .option('--json', 'as JSON')
    .action(({ json, sources }: { json?: boolean; sources?: boolean }, command: Command) => {
      if (sources === true)
        return printList(listSettings(configOf(command)), ['setting', 'value', 'source'], json === true)
      const shown = maskedConfig(configOf(command))
      terminal.say(json === true ? JSON.stringify(shown, null, 2) : stringify(shown).trimEnd())
    })
  return config
}
