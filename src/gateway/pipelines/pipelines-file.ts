import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { readFetch } from '#databases/request/read-request.ts'
import { closestName } from '#kernel/closest-name.ts'
import type { Config } from '#kernel/config/config.ts'
import type { Environment } from '#kernel/config/environment.ts'
import { ConfigError, type Problem, type Report } from '#kernel/config/problems.ts'
import { type Tree, treeAt } from '#kernel/config/tree.ts'
import { treeOfYaml } from '#kernel/config/yaml.ts'
import { Failure } from '#kernel/errors.ts'
import { requestOptionsOf } from '../prepare.ts'
import {
  bodyOf,
  type PipelineBody,
  type PipelineDefinition,
  pipelineSchemas,
  tableNameOf,
} from './definition.ts'
import { readBySchema } from './read-by-schema.ts'
import type { NamedPipelines } from './registry.ts'

/** The file as one process has read it for all processes of the service, so that they agree. */
export type PipelinesFile = { readonly name: string; readonly text: string }

const DEFAULT_FILE = 'pipelines.yaml'
/** A file of this size takes about a second to parse, during which the process answers no requests. */
const MAX_BYTES = 256 * 1_024
const MAX_PIPELINES = 1_000
/** The parser searches the document for the anchor of each alias. */
const MAX_ALIASES = 100
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/

/** Undefined if the setting is absent and there is no `pipelines.yaml`. Throws a ConfigError if the file cannot be read. */
export function readPipelinesFile({ gateway }: Config, cwd: string): PipelinesFile | undefined {
  const name = gateway.pipelines_file ?? DEFAULT_FILE
  const file = path.resolve(cwd, name)
  try {
    const found = statSync(file)
    if (!found.isFile()) throw new ConfigError([wholeFile(name, 'is not a file')])
    if (found.size > MAX_BYTES)
      throw new ConfigError([wholeFile(name, `is larger than ${MAX_BYTES / 1_024} KiB`)])
    return { name, text: readFileSync(file, 'utf8') }
  } catch (error) {
    if (!(error instanceof Error) || !('syscall' in error)) throw error
    if (gateway.pipelines_file === undefined && 'code' in error && error.code === 'ENOENT') return undefined
    throw new ConfigError([wholeFile(name, `cannot be read: ${error.message}`)])
  }
}

const wholeFile = (source: string, says: string): Problem => ({ source, setting: '', says })

/** Throws a ConfigError with all problems of the file, each with its line and field. */
export function parsePipelines(
  config: Config,
  file: PipelinesFile | undefined,
  env: Environment,
): NamedPipelines {
  if (file === undefined) return new Map()
  return parse(file, env, (tree, report) => readFile(config, tree, report))
}

/** The pipeline of a file of its own, with the members of the body of a run; in YAML, which includes JSON. */
export const parsePipelineBody = (config: Config, file: PipelinesFile, env: Environment): PipelineBody =>
  parse(file, env, (tree, report) => {
    const { PipelineBody: schema } = pipelineSchemas(config)
    // The schema is that of the type, and `readBySchema` has reported every deviation.
    return (readBySchema(schema, tree, '', report) ?? {}) as PipelineBody
  })

function parse<T>(
  { name, text }: PipelinesFile,
  env: Environment,
  read: (tree: Tree, report: Report) => T,
): T {
  const problems: Problem[] = []
  const report: Report = (place, setting, says) => problems.push({ ...place, setting, says })
  const tree = treeOfYaml(text, { source: name, env, report, maxAliases: MAX_ALIASES })
  const value = read(tree ?? { kind: 'faulty', place: { source: name } }, report)
  if (problems.length > 0) throw new ConfigError(problems.slice(0, MAX_PROBLEMS))
  return value
}

/** More problems than these are not of use to the operator. */
const MAX_PROBLEMS = 100

function readFile(config: Config, tree: Tree, report: Report): NamedPipelines {
  const entries = sectionAt(tree, '', 'a section with pipelines', report)
  for (const [name, inner] of entries)
    if (name !== 'pipelines') report(inner.place, name, unknownTopLevel(name))
  const named = entries.get('pipelines')
  const pipelines = named === undefined ? new Map() : sectionAt(named, 'pipelines', NAMES, report)
  if (pipelines.size > MAX_PIPELINES)
    report(tree.place, 'pipelines', `has more than ${MAX_PIPELINES} pipelines`)
  const { PipelineDefinition: schema } = pipelineSchemas(config)
  return new Map(
    [...pipelines].map(([name, inner]) => {
      const at = `pipelines.${name}`
      if (!NAME.test(name)) report(inner.place, at, `a name of a pipeline must match ${NAME.source}`)
      // The schema is that of the type, and `readBySchema` has reported every deviation.
      const definition = (readBySchema(schema, inner, at, report) ?? {}) as PipelineDefinition
      checkParts(config, definition, inner, (place, field, says) => report(place, `${at}.${field}`, says))
      return [name, definition] as const
    }),
  )
}

const NAMES = 'a section with names of pipelines'

function sectionAt(tree: Tree, at: string, allowed: string, report: Report): ReadonlyMap<string, Tree> {
  if (tree.kind === 'section') return tree.entries
  if (tree.kind === 'text' || tree.kind === 'list') report(tree.place, at, `must be ${allowed}`)
  return new Map()
}

function unknownTopLevel(name: string): string {
  const isMisspelt = closestName(name, ['pipelines']) !== undefined
  return isMisspelt ? 'unknown field; did you mean pipelines?' : 'unknown field; known here: pipelines'
}

type Check = { readonly part: 'source' | 'sink'; readonly read: () => unknown }

/** Reads what the schema leaves to the run, as a run does. */
function checkParts(
  config: Config,
  { source = {}, sink = {} }: PipelineDefinition,
  tree: Tree,
  report: Report,
): void {
  const { limit: _, client: __, ...body } = source
  // A request may name the table.
  const named = () => (tableNameOf(source) === undefined ? { ...body, table_name: 'unnamed' } : body)
  const checks: readonly Check[] = [
    { part: 'source', read: () => readFetch(bodyOf(named()), requestOptionsOf({ config })) },
    { part: 'sink', read: () => tableNameOf(sink) },
  ]
  for (const { part, read } of checks)
    try {
      read()
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      const field = fieldOf(error)
      const place = treeAt(tree, [part, field]) ?? treeAt(tree, [part]) ?? tree
      report(place.place, field === '' ? part : `${part}.${field}`, error.hint ?? error.message)
    }
}

/** `conditions` of `conditions[0].operator`. */
const fieldOf = ({ details }: Failure): string => {
  const { field } = details ?? {}
  return typeof field === 'string' ? (/^\w*/.exec(field)?.[0] ?? '') : ''
}
