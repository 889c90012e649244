import { Command, type CommanderError } from 'commander'
import { VERSION } from '#kernel/version.ts'

/** Every command is one line. Each is loaded when it is wanted: `config check` need not load a web server. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./serve.ts')).serveCommand(),
  migrate: async () => (await import('./migrate.ts')).migrateCommand(),
  config: async () => (await import('./config.ts')).configCommand(),
  keys: async () => (await import('./keys.ts')).keysCommand(),
  users: async () => (await import('./users.ts')).usersCommand(),
  mail: async () => (await import('./mail.ts')).mailCommand(),
  openapi: async () => (await import('./openapi.ts')).openapiCommand(),
  doctor: async () => (await import('./doctor.ts')).doctorCommand(),
}

/** The program, with the commands that the arguments may mean; with all of them when they name none. */
export async function program(argv: readonly string[]): Promise<Command> {
  const gatehouse = new Command('gatehouse')
    .description('Authentication and data gateway: one process on one Postgres')
    .version(VERSION)
    .option('--config <file>', 'configuration file (default: gatehouse.yaml, if there is one)')
    .option('--data-dir <folder>', 'setting server.data_dir (default: ./data)')
    .configureHelp({ showGlobalOptions: true })
  const named = argv.filter((word) => Object.hasOwn(COMMANDS, word))
  for (const name of named.length > 0 ? new Set(named) : Object.keys(COMMANDS)) {
    const command = await COMMANDS[name]?.()
    if (command !== undefined) gatehouse.addCommand(command)
  }
  exitOnError(gatehouse)
  return gatehouse
}

/** Wrong usage is 2, help and version are 0, and whatever a command throws is said in a sentence and is 1. */
function exitOnError(command: Command): void {
  command.exitOverride((error: CommanderError) => process.exit(error.exitCode === 0 ? 0 : 2))
  for (const inner of command.commands) exitOnError(inner)
}
