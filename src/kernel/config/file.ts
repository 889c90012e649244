import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { Environment } from './environment.ts'
import type { Report } from './problems.ts'
import type { Tree } from './tree.ts'
import { treeOfYaml } from './yaml.ts'

const DEFAULT_FILE = 'gatehouse.yaml'

export type ConfigSource = {
  /** The value of `--config`. */
  readonly file?: string | undefined
  readonly env: Environment
  readonly cwd: string
  /** Options of the command line that are settings. */
  readonly options?: readonly GivenOption[]
}

/** `--port 9000`: the option, the dotted name of its setting, and the value as text. */
export type GivenOption = { readonly option: string; readonly setting: string; readonly text: string }

/** The tree of the configuration file; undefined when there is none, or, with a report, when it cannot be read. */
export function treeOfFile({ file, env, cwd }: ConfigSource, report: Report): Tree | undefined {
  // An empty SERVICE_CONFIG counts as absent, like every other variable.
  const named = file ?? (env.SERVICE_CONFIG || undefined)
  const name = named ?? DEFAULT_FILE
  try {
    return treeOfYaml(readFileSync(path.resolve(cwd, name), 'utf8'), { source: name, env, report })
  } catch (error) {
    if (!isSystemError(error)) throw error
    if (named || error.code !== 'ENOENT') report({ source: name }, '', `cannot be read: ${error.message}`)
    return undefined
  }
}

const isSystemError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && 'syscall' in error
