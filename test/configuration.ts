// Loads a configuration from a file in a new folder, for tests of the configuration.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Config, ConfigError, loadConfig } from '#kernel/config/config.ts'
import type { Environment } from '#kernel/config/environment.ts'
import type { GivenOption } from '#kernel/config/file.ts'

export type Trial = {
  /** The content of gatehouse.yaml. */
  readonly yaml?: string
  /** Other files, by name. */
  readonly files?: Readonly<Record<string, string>>
  readonly env?: Environment
  /** Value of `--config`. */
  readonly file?: string
  readonly options?: readonly GivenOption[]
}

export function load({ yaml, files = {}, env = {}, file, options = [] }: Trial): Config {
  const cwd = mkdtempSync(path.join(tmpdir(), 'gatehouse-config-'))
  try {
    const all = yaml === undefined ? files : { 'gatehouse.yaml': yaml, ...files }
    for (const [name, content] of Object.entries(all)) {
      mkdirSync(path.dirname(path.join(cwd, name)), { recursive: true })
      writeFileSync(path.join(cwd, name), content)
    }
    return loadConfig({ cwd, env, file, options })
  } finally {
    rmSync(cwd, { recursive: true })
  }
}

/** For comparison: the same settings from other places. */
export const withoutSources = (config: Config): Config => ({ ...config, sources: {} })

/** The problems that a start would report; empty if the configuration is valid. */
export function complaints(trial: Trial): string[] {
  try {
    load(trial)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n')
    throw error
  }
}
