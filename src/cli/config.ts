import { Command } from 'commander'
import { stringify } from 'yaml'
import { maskedConfig } from '#kernel/config/config.ts'
import { configOf } from './context.ts'
import { startProblems } from './start-checks.ts'
import { terminal } from './terminal.ts'

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
    .option('--json', 'as JSON')
    .action(({ json }: { json?: boolean }, command: Command) => {
      const shown = maskedConfig(configOf(command))
      terminal.say(json === true ? JSON.stringify(shown, null, 2) : stringify(shown).trimEnd())
    })
  return config
}
