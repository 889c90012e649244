import { Command, type CommanderError } from 'commander'
import { VERSION } from '#kernel/version.ts'

/** All commands, loaded on demand so that `config check` does not load a web server. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('./serve.ts')).serveCommand(),
  migrate: async () => (await import('./migrate.ts')).migrateCommand(),
  config: async () => (await import('./config.ts')).configCommand(),
  keys: async () => (await import('./keys.ts')).keysCommand(),
  'breach-list': async () => (await import('./breach-list.ts')).breachListCommand(),
  'jwt-keys': async () => (await import('./jwt-keys.ts')).jwtKeysCommand(),
  users: async () => (await import('./users.ts')).usersCommand(),
  orgs: async () => (await import('./orgs.ts')).orgsCommand(),
  mail: async () => (await import('./mail.ts')).mailCommand(),
  pipelines: async () => (await import('./pipelines.ts')).pipelinesCommand(),
  export: async () => (await import('./export.ts')).exportCommand(),
  import: async () => (await import('./import.ts')).importCommand(),
  webhooks: async () => (await import('./webhooks.ts')).webhooksCommand(),
  backup: async () => (await import('./backup.ts')).backupCommand(),
  restore: async () => (await import('./restore.ts')).restoreCommand(),
  types: async () => (await import('./types.ts')).typesCommand(),
  openapi: async () => (await import('./openapi.ts')).openapiCommand(),
  login: async () => (await import('./login.ts')).loginCommand(),
  logout: async () => (await import('./own-session.ts')).logoutCommand(),
  whoami: async () => (await import('./own-session.ts')).whoamiCommand(),
  doctor: async () => (await import('./doctor.ts')).doctorCommand(),
}

/** Creates the program with the commands that the arguments name, or with all commands if they name none. */
export async function program(argv: readonly string[]): Promise<Command> {
  const gatehouse = new Command('gatehouse')
    .description('Authentication and data gateway: one process on one Postgres')
    .version(VERSION)
    .option('--config <file>', 'configuration file (default: gatehouse.yaml, if there is one)')
    .option('--data-dir <folder>', 'setting server.data_dir (default: ./data)')
    .configureHelp({ showGlobalOptions: true })
    .addHelpText('after', '\nExit codes: 0 done, 1 failed, 2 wrong usage.')
  const named = argv.filter((word) => Object.hasOwn(COMMANDS, word))
  // A service must not lose its log unnoticed.
  if (!named.includes('serve')) process.stdout.off('error', ignoreClosedPipe).on('error', ignoreClosedPipe)
  for (const name of named.length > 0 ? new Set(named) : Object.keys(COMMANDS)) {
    const command = await COMMANDS[name]?.()
    if (command !== undefined) gatehouse.addCommand(command)
  }
  settle(gatehouse)
  return gatehouse
}

/** The reader of a command's output may end first: `gatehouse openapi | head`. */
function ignoreClosedPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
}

/**
 * Sets exit codes: 2 for wrong usage, 0 for help and version. Errors that a command throws exit with 1 (`fatal`). The help of each command
 * shows the options of the program too.
 */
function settle(command: Command): void {
  command.exitOverride((error: CommanderError) => process.exit(error.exitCode === 0 ? 0 : 2))
  for (const inner of command.commands) settle(inner.copyInheritedSettings(command))
}
