import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Config } from './config/config.ts'
import { type Random, randomToken } from './random.ts'

/** The secret that everything sealed or derived comes from. */
export type InstallationSecret = {
  readonly secret: string
  /** The secret before, during a rotation. */
  readonly previousSecret: string | undefined
  /** The part of an error message that says why this is not the secret of the control database. */
  readonly mismatch: string
}

/** The part of the configuration that comes from the environment and belongs in no file. */
export type Installation = InstallationSecret & {
  readonly adminKey: string
  /** The file of a generated admin key; undefined when the environment gave the key. */
  readonly adminKeyFile: string | undefined
}

export class InstallationError extends Error {}

/** The control database is empty: the service has not been started yet. */
export class NoInstallation extends InstallationError {}

type Environment = Readonly<Record<string, string | undefined>>

/** The secret of the environment, or outside production of the data folder; undefined when neither has one. Writes nothing. */
export function readSecret(config: Config, env: Environment): InstallationSecret | undefined {
  const { SERVICE_SECRET: given, SERVICE_SECRET_PREVIOUS: previous } = env
  const problems = lacking(config, 'SERVICE_SECRET', given, 32)
  if (problems.length > 0) throw new InstallationError(problems.join('\n'))
  const file = secretFile(config)
  const secret = given ?? contentOf(file)
  if (secret === undefined) return undefined
  return {
    secret,
    previousSecret: previous === '' ? undefined : previous,
    mismatch: `the one in ${given === undefined ? path.resolve(file) : 'SERVICE_SECRET'} does not fit`,
  }
}

/** The `mismatch` of an installation that has none yet. */
export const absentSecret = (config: Config): string =>
  `there is no SERVICE_SECRET and no file ${path.resolve(secretFile(config))}`

/** For commands that create nothing. */
export const noSecret = (config: Config): InstallationError =>
  new InstallationError(
    `The installation cannot be identified: ${absentSecret(config)}. Run this in the folder of the installation, or name its ` +
      'data folder with --data-dir or SERVICE_SERVER__DATA_DIR. A new installation begins with gatehouse serve.',
  )

/**
 * The secret and the admin key: from the environment, or outside production generated once into the data folder, for
 * the service's user only. No default exists.
 */
export function openInstallation(config: Config, env: Environment, random: Random): Installation {
  const { SERVICE_SECRET: secret, SERVICE_KEY_12: adminKey } = env
  const problems = secretProblems(config, env)
  if (problems.length > 0) throw new InstallationError(problems.join('\n'))
  if (secret === undefined) generatedOnce(secretFile(config), random)
  const found = readSecret(config, env)
  if (found === undefined) throw noSecret(config)
  const file = adminKeyFile(config)
  return {
    ...found,
    adminKey: adminKey ?? generatedOnce(file, random),
    adminKeyFile: adminKey === undefined ? file : undefined,
  }
}

/** Whether the secret or the admin key still has to be generated. */
export const isIncomplete = (config: Config, env: Environment): boolean =>
  readSecret(config, env) === undefined ||
  (env.SERVICE_KEY_12 === undefined && !existsSync(adminKeyFile(config)))

const adminKeyFile = ({ server }: Config): string => `${server.data_dir}/admin-key`

// Spelled like the setting, because messages name it: `./data/secret`.
export const secretFile = ({ server }: Config): string => `${server.data_dir}/secret`

/** One sentence for each variable of the environment that is missing or too short. */
export const secretProblems = (config: Config, env: Environment): readonly string[] => [
  ...lacking(config, 'SERVICE_SECRET', env.SERVICE_SECRET, 32),
  ...lacking(config, 'SERVICE_KEY_12', env.SERVICE_KEY_12, config.production ? 24 : 1),
]

function lacking({ production }: Config, name: string, value: string | undefined, length: number): string[] {
  const advice = `set ${name} to at least ${length} random characters, for example: openssl rand -base64 33`
  if (value === undefined) return production ? [`${name} is missing: ${advice}`] : []
  return value.length < length ? [`${name} is too short: ${advice}`] : []
}

/** Undefined when the file does not exist. A file that may not be read is an error, and no sign of a new installation. */
function contentOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** A random text of 43 characters in a file that only its owner can read. Concurrent processes get the same text. */
export function generatedOnce(file: string, random: Random): string {
  if (!existsSync(file)) {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
    try {
      writeFileSync(file, `${randomToken(random)}\n`, { mode: 0o600, flag: 'wx' })
    } catch (error) {
      // Another process was first, and its text is used.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
  return readFileSync(file, 'utf8').trim()
}
