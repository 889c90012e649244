import type { Command } from 'commander'
import { type Config, loadConfig } from '#kernel/config/config.ts'
import { type Installation, openInstallation } from '#kernel/installation.ts'
import { createLog, type Log } from '#kernel/log.ts'
import { secureRandom } from '#kernel/random.ts'
import { type Secrets, secretsFrom } from '#kernel/secrets.ts'
import { terminal } from './terminal.ts'

/** The outside world, read once: the only place besides the tests that looks at the environment. */
// biome-ignore lint/style/noProcessEnv: this is that place
const environment = (): Record<string, string | undefined> => process.env

/** The configuration that `--config`, the environment and the working folder name. */
export function configOf(command: Command): Config {
  const { config: file } = command.optsWithGlobals<{ config?: string }>()
  return loadConfig({ ...(file === undefined ? {} : { file }), env: environment(), cwd: process.cwd() })
}

export type Context = {
  readonly config: Config
  readonly installation: Installation
  readonly secrets: Secrets
  /** One variable, for clients whose URL is in one. */
  readonly environment: (name: string) => string | undefined
  readonly log: Log
}

/** Configuration, secrets and log: what every command begins with that does something. */
export function contextOf(command: Command): Context {
  const config = configOf(command)
  const { level, format = terminal.isInteractive ? 'pretty' : 'json', requests } = config.log
  const installation = openInstallation(config, environment(), secureRandom)
  return {
    config: {
      ...config,
      log: { ...config.log, requests: requests ?? (terminal.isInteractive ? 'all' : 'problems') },
    },
    installation,
    secrets: secretsFrom(installation.secret, secureRandom, installation.previousSecret),
    environment: (name) => environment()[name],
    log: createLog({ level, format }),
  }
}
