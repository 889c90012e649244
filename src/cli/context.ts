import type { Command } from 'commander'
import { type Config, loadConfig } from '#kernel/config/config.ts'
import type { Mismatch } from '#kernel/db/installation.ts'
import {
  absentSecret,
  type Installation,
  type InstallationSecret,
  isIncomplete,
  noSecret,
  openInstallation,
  readSecret,
} from '#kernel/installation.ts'
import { createLog, type Log } from '#kernel/log.ts'
import { secureRandom } from '#kernel/random.ts'
import { newSecret, type Secrets, secretsFrom } from '#kernel/secrets.ts'
import { expectOwnDatabase } from '../control.ts'
import { terminal } from './terminal.ts'

/** The outside world, read once: the only place besides the tests that looks at the environment. */
// biome-ignore lint/style/noProcessEnv: this is that place
const environment = (): Record<string, string | undefined> => process.env

/** The configuration that `--config`, the environment and the working folder name. */
export function configOf(command: Command): Config {
  const { config: file } = command.optsWithGlobals<{ config?: string }>()
  return loadConfig({ ...(file === undefined ? {} : { file }), env: environment(), cwd: process.cwd() })
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
  if (config.database.url !== undefined && isIncomplete(config, environment())) {
    const found = readSecret(config, environment())
    // One that is not there fits nothing.
    const asking = found ? secretsOf(found) : secretsOf({ ...NO_SECRET, misfit: absentSecret(config) })
    await expectOwnDatabase(config.database.url, { ...asking, takeOver })
  }
  const installation = openInstallation(config, environment(), secureRandom)
  return { ...surroundings(config), ...secretsOf(installation), installation }
}

const NO_SECRET = { secret: newSecret(secureRandom), previousSecret: undefined }

const secretsOf = ({ secret, previousSecret, misfit }: InstallationSecret) => ({
  secrets: secretsFrom(secret, secureRandom, previousSecret),
  misfit,
})

function surroundings(config: Config): Pick<Context, 'config' | 'environment' | 'log'> {
  const { level, format = terminal.isInteractive ? 'pretty' : 'json', requests } = config.log
  return {
    config: {
      ...config,
      log: { ...config.log, requests: requests ?? (terminal.isInteractive ? 'all' : 'problems') },
    },
    environment: (name) => environment()[name],
    log: createLog({ level, format }),
  }
}
