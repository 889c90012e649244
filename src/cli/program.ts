import { Command, type CommanderError } from 'commander'
import { VERSION } from '#kernel/version.ts'
import { configCommand } from './config.ts'
import { doctorCommand } from './doctor.ts'
import { keysCommand } from './keys.ts'
import { mailCommand } from './mail.ts'
import { migrateCommand } from './migrate.ts'
import { openapiCommand } from './openapi.ts'
import { serveCommand } from './serve.ts'

/** Every command is one line. */
export function program(): Command {
  const gatehouse = new Command('gatehouse')
    .description('Authentication and data gateway: one process on one Postgres')
    .version(VERSION)
    .option('--config <file>', 'configuration file (default: gatehouse.yaml, if there is one)')
    .configureHelp({ showGlobalOptions: true })
  for (const command of [
    serveCommand(),
    migrateCommand(),
    configCommand(),
    keysCommand(),
    mailCommand(),
    openapiCommand(),
    doctorCommand(),
  ]) {
    gatehouse.addCommand(command)
  }
  exitOnError(gatehouse)
  return gatehouse
}

/** Wrong usage is 2, help and version are 0, and whatever a command throws is said in a sentence and is 1. */
function exitOnError(command: Command): void {
  command.exitOverride((error: CommanderError) => process.exit(error.exitCode === 0 ? 0 : 2))
  for (const inner of command.commands) exitOnError(inner)
}
