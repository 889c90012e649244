import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Config } from './config/config.ts'
import { type Random, randomToken } from './random.ts'

/** The environment's part of the configuration: what no file should hold. */
export type Installation = {
  /** Everything that is sealed or derived comes from it. */
  readonly secret: string
  /** What it was before, while a rotation lasts. */
  readonly previousSecret: string | undefined
  readonly adminKey: string
  /** Where a generated admin key lies; undefined when the environment gave it. */
  readonly adminKeyFile: string | undefined
}

export class InstallationError extends Error {}

/**
 * The secret and the admin key: from the environment, or outside production generated once into the data folder, for
 * the service's user only. No default exists.
 */
export function openInstallation(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
  random: Random,
): Installation {
  const { SERVICE_SECRET: secret, SERVICE_SECRET_PREVIOUS: previousSecret, SERVICE_KEY_12: adminKey } = env
  const problems = [
    ...lacking(config, 'SERVICE_SECRET', secret, 32),
    ...lacking(config, 'SERVICE_KEY_12', adminKey, config.production ? 24 : 1),
  ]
  if (problems.length > 0) throw new InstallationError(problems.join('\n'))
  // As the setting is written, since people are told: `./data/admin-key`.
  const file = (name: string) => `${config.server.data_dir}/${name}`
  return {
    secret: secret ?? generatedOnce(file('secret'), random),
    previousSecret: previousSecret === '' ? undefined : previousSecret,
    adminKey: adminKey ?? generatedOnce(file('admin-key'), random),
    adminKeyFile: adminKey === undefined ? file('admin-key') : undefined,
  }
}

function lacking({ production }: Config, name: string, value: string | undefined, length: number): string[] {
  const advice = `set ${name} to at least ${length} random characters, for example: openssl rand -base64 33`
  if (value === undefined) return production ? [`${name} is missing: ${advice}`] : []
  return value.length < length ? [`${name} is too short: ${advice}`] : []
}

/** A random text of 43 characters in a file that only its owner can read; two processes at once agree on one. */
export function generatedOnce(file: string, random: Random): string {
  if (!existsSync(file)) {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
    try {
      writeFileSync(file, `${randomToken(random)}\n`, { mode: 0o600, flag: 'wx' })
    } catch (error) {
      // Somebody else was first; theirs is as good.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
  return readFileSync(file, 'utf8').trim()
}
