import type { Command } from 'commander'
import { type PipelinesFile, parsePipelines, readPipelinesFile } from '#gateway/pipelines/pipelines-file.ts'
import type { NamedPipelines } from '#gateway/pipelines/registry.ts'
import { type Config, loadConfig } from '#kernel/config/config.ts'
import { embeddedFolder, folderProblem, lostDatabase } from '#kernel/data-folder.ts'
import { findInterrupted } from '#kernel/db/embedded/replacement.ts'
import type { InstallationCheck, Mismatch } from '#kernel/db/installation.ts'
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
} from '#kernel/installation-secrets.ts'
import { createLog, type Log } from '#kernel/log.ts'
import { secureRandom } from '#kernel/random.ts'
import { createSecrets, newSecret, type Secrets } from '#kernel/secrets.ts'
import { expectOwnDatabase } from '#startup/open-databases.ts'
import { terminal } from './terminal.ts'

/** Process environment. Outside the tests, only this function reads it. */
// biome-ignore lint/style/noProcessEnv: the only reader of the environment
export const environment = (): Record<string, string | undefined> => process.env

/** Command-line options that override a setting. */
const OPTIONS = {
  port: { option: '--port', setting: 'server.port' },
  dataDir: { option: '--data-dir', setting: 'server.data_dir' },
} as const

/** Loads the configuration from `--config`, the environment, the working folder and the command's options. */
export function configOf(command: Command): Config {
  const given = command.optsWithGlobals<{ config?: string; port?: string; dataDir?: string }>()
  const options = (['port', 'dataDir'] as const).flatMap((name) => {
    const text = given[name]
    return text === undefined ? [] : [{ ...OPTIONS[name], text }]
  })
  return loadConfig({ file: given.config, env: environment(), cwd: process.cwd(), options })
}

/** Reads `gateway.pipelines_file`. Throws a ConfigError with all of its problems. */
export function loadPipelines(config: Config): {
  readonly file: PipelinesFile | undefined
  readonly pipelines: NamedPipelines
} {
  const file = readPipelinesFile(config, process.cwd())
  return { file, pipelines: pipelinesOf(config, file) }
}

/** The pipelines of a file that is read already. */
export const pipelinesOf = (config: Config, file: PipelinesFile | undefined): NamedPipelines =>
  parsePipelines(config, file, environment())

/** Problems with the environment and the data folder, one sentence each. */
export function placeProblems(config: Config): readonly string[] {
  const { database, mail, server } = config
  const { SERVICE_SECRET: secret, SERVICE_KEY_12: adminKey } = environment()
  // If none of these holds, the service writes no files, so a read-only disk is fine.
  const keepsFiles = database.url === undefined || mail.transport === 'outbox' || !secret || !adminKey
  const folder = keepsFiles ? folderProblem(server.data_dir) : undefined
  const restore = database.url === undefined ? findInterrupted(embeddedFolder(config)) : undefined
  const lost = lostDatabase(config)
  return [
    ...secretProblems(config, environment()),
    ...(folder === undefined ? [] : [folder]),
    ...(restore === undefined || restore.isComplete ? [] : [restore.says]),
    ...(lost === undefined ? [] : [lost]),
  ]
}

/** Configuration, secrets and log, as needed by every command that opens a database. */
export type Context = {
  readonly config: Config
  readonly secrets: Secrets
  /** Part of the error message if the control database was set up with a different secret. */
  readonly mismatch: string
  /** Reads one environment variable, for clients that are registered with `url_env_var`. */
  readonly environment: (name: string) => string | undefined
  readonly log: Log
}

/** Context of `serve` and `migrate`, the two commands that may create an installation. */
export type InstallingContext = Context & { readonly installation: Installation }

/** Reads the existing installation without writing anything. Throws if there is none. */
export function contextOf(command: Command): Context {
  const config = configOf(command)
  const found = readSecret(config, environment())
  if (found === undefined) throw noSecret(config)
  return { ...surroundings(config), ...secretsOf(found) }
}

/** Generates the secret and the admin key if they are missing. Throws if the control database belongs to another installation. */
export async function installingContext(command: Command, takeOver?: Mismatch): Promise<InstallingContext> {
  const config = configOf(command)
  const problems = placeProblems(config)
  if (problems.length > 0) throw new InstallationError(problems.join('\n'))
  if (config.database.url !== undefined && isIncomplete(config, environment()))
    await expectOwnDatabase(config, { ...askingOf(config), takeOver })
  const installation = openInstallation(config, environment(), secureRandom)
  return { ...surroundings(config), ...secretsOf(installation), installation }
}

/** The secret of the installation; undefined when there is none yet. Writes nothing. */
export const secretOf = (config: Config): InstallationSecret | undefined => readSecret(config, environment())

/** Secrets for opening the control database. If no secret exists yet, a random one is used, which matches no database. */
export function askingOf(config: Config): InstallationCheck {
  const found = readSecret(config, environment())
  return found ? secretsOf(found) : secretsOf({ ...NO_SECRET, mismatch: absentSecret(config) })
}

const NO_SECRET = { secret: newSecret(secureRandom), previousSecret: undefined }

const secretsOf = ({ secret, previousSecret, mismatch }: InstallationSecret) => ({
  secrets: createSecrets(secret, secureRandom, previousSecret),
  mismatch,
})

export const logOf = ({ log: { level, format = terminal.isInteractive ? 'pretty' : 'json' } }: Config): Log =>
  createLog({ level, format })

/** Time of the drain in production, milliseconds: a health check that looks every second has seen it. */
const DRAIN = 5_000

function surroundings(config: Config): Pick<Context, 'config' | 'environment' | 'log'> {
  const { requests } = config.log
  const drain = config.server.drain ?? (config.production && !terminal.isInteractive ? DRAIN : 0)
  return {
    config: {
      ...config,
      server: { ...config.server, drain },
      log: { ...config.log, requests: requests ?? (terminal.isInteractive ? 'all' : 'problems') },
    },
    environment: (name) => environment()[name],
    log: logOf(config),
  }
}
