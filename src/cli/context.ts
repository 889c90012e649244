import type { Command } from 'commander'
import { type Config, loadConfig } from '#kernel/config/config.ts'
import { folderProblem } from '#kernel/data-folder.ts'
import type { Asking, Mismatch } from '#kernel/db/installation.ts'
import {
  absentSecret,
  type Installation,
  InstallationError,
  type InstallationSecret,
  isIncomplete,
  noSecret,
  openInstallation,
  readSecret,
  secretProblems,
} from '#kernel/installation.ts'
import { createLog, type Log } from '#kernel/log.ts'
import { secureRandom } from '#kernel/random.ts'
import { newSecret, type Secrets, secretsFrom } from '#kernel/secrets.ts'
import { expectOwnDatabase } from '../control.ts'
import { terminal } from './terminal.ts'

/** The outside world, read once: the only place besides the tests that looks at the environment. */
// biome-ignore lint/style/noProcessEnv: this is that place
const environment = (): Record<string, string | undefined> => process.env

/** Options that are settings. */
const OPTIONS = {
  port: { option: '--port', setting: 'server.port' },
  dataDir: { option: '--data-dir', setting: 'server.data_dir' },
} as const

/** The configuration that `--config`, the environment, the working folder and the command's options name. */
export function configOf(command: Command): Config {
  const given = command.optsWithGlobals<{ config?: string; port?: string; dataDir?: string }>()
  const options = (['port', 'dataDir'] as const).flatMap((name) => {
    const text = given[name]
    return text === undefined ? [] : [{ ...OPTIONS[name], text }]
  })
  return loadConfig({ file: given.config, env: environment(), cwd: process.cwd(), options })
}

/** Why the environment and the data folder do not do; a sentence each. */
export function placeProblems(config: Config): readonly string[] {
  const { database, mail, server } = config
  const { SERVICE_SECRET: secret, SERVICE_KEY_12: adminKey } = environment()
  // Without them it runs on a disk that is only read.
  const keepsFiles = database.url === undefined || mail.transport === 'outbox' || !secret || !adminKey
  const folder = keepsFiles ? folderProblem(server.data_dir) : undefined
  return [...secretProblems(config, environment()), ...(folder === undefined ? [] : [folder])]
}

/** Configuration, secrets and log: what every command begins with that does something. */
export type Context = {
  readonly config: Config
  readonly secrets: Secrets
  /** For people, when the control database has another secret. */
  readonly misfit: string
  /** One variable, for clients whose URL is in one. */
  readonly environment: (name: string) => string | undefined
  readonly log: Log
}

/** Of the two commands that may begin an installation. */
export type MakingContext = Context & { readonly installation: Installation }

/** Uses the installation that is there. Writes nothing, and refuses where there is none. */
export function contextOf(command: Command): Context {
  const config = configOf(command)
  const found = readSecret(config, environment())
  if (found === undefined) throw noSecret(config)
  return { ...surroundings(config), ...secretsOf(found) }
}

/** Makes up the secret and the admin key that are missing, unless the control database is another installation's. */
export async function makingContext(command: Command, takeOver?: Mismatch): Promise<MakingContext> {
  const config = configOf(command)
  const problems = placeProblems(config)
  if (problems.length > 0) throw new InstallationError(problems.join('\n'))
  if (config.database.url !== undefined && isIncomplete(config, environment()))
    await expectOwnDatabase(config, { ...askingOf(config), takeOver })
  const installation = openInstallation(config, environment(), secureRandom)
  return { ...surroundings(config), ...secretsOf(installation), installation }
}

/** With the secret that there is. One that is not there fits nothing. */
export function askingOf(config: Config): Asking {
  const found = readSecret(config, environment())
  return found ? secretsOf(found) : secretsOf({ ...NO_SECRET, misfit: absentSecret(config) })
}

const NO_SECRET = { secret: newSecret(secureRandom), previousSecret: undefined }

const secretsOf = ({ secret, previousSecret, misfit }: InstallationSecret) => ({
  secrets: secretsFrom(secret, secureRandom, previousSecret),
  misfit,
})

export const logOf = ({ log: { level, format = terminal.isInteractive ? 'pretty' : 'json' } }: Config): Log =>
  createLog({ level, format })

function surroundings(config: Config): Pick<Context, 'config' | 'environment' | 'log'> {
  const { requests } = config.log
  return {
    config: {
      ...config,
      log: { ...config.log, requests: requests ?? (terminal.isInteractive ? 'all' : 'problems') },
    },
    environment: (name) => environment()[name],
    log: logOf(config),
  }
}
