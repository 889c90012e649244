import { type TSchema, Type } from 'typebox'
import { outline, schemaAt } from './outline.ts'
import type { Problem, Report } from './problems.ts'
import { isSetting } from './setting.ts'
import { merge, nest, type Tree, treeOfJson } from './tree.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** `session.expires_in` is SERVICE_SESSION__EXPIRES_IN. */
export const variableOf = (setting: string) => `SERVICE_${setting.replaceAll('.', '__').toUpperCase()}`

/** The settings of the environment. An empty variable counts as absent. */
export function treeOfEnvironment(settings: TSchema, env: Environment, report: Report): Tree {
  const named = [...aliased(settings, env), ...prefixed(settings, env)]
  const trees = named.map(({ variable, path, text }) => {
    const place = { source: variable }
    const isJson = isMapping(schemaAt(settings, path))
    return nest(path, isJson ? treeOfObject(text, variable, path, report) : { kind: 'text', text, place })
  })
  return trees.reduce(merge, { kind: 'section', entries: new Map(), place: { source: 'environment' } })
}

type VariableSetting = { readonly variable: string; readonly path: readonly string[]; readonly text: string }

/** Variables that are set and empty, of settings for which that is a mistake and which nothing else sets. */
export function emptied(
  settings: TSchema,
  env: Environment,
  find: (path: readonly string[]) => unknown,
): readonly Problem[] {
  return outline(settings).flatMap(({ path, schema }) => {
    const says = isSetting(schema) ? schema.emptied : undefined
    if (says === undefined || !isSetting(schema) || find(path) !== undefined) return []
    const setting = path.join('.')
    return [variableOf(setting), schema.alias ?? '']
      .filter((variable) => env[variable] === '')
      .map((source) => ({ source, setting, says }))
  })
}

/** Names like DATABASE_URL. They come first, so that SERVICE_… beats them. */
function aliased(settings: TSchema, env: Environment): VariableSetting[] {
  return outline(settings).flatMap(({ path, schema }) => {
    const variable = isSetting(schema) ? schema.alias : undefined
    const text = variable && env[variable]
    return variable && text ? [{ variable, path, text }] : []
  })
}

/** From the least to the most specific, so that SERVICE_CLIENTS__A__URL beats the JSON of SERVICE_CLIENTS. */
function prefixed(settings: TSchema, env: Environment): VariableSetting[] {
  return Object.entries(env)
    .flatMap(([variable, text]) => {
      const path = pathOf(settings, variable)
      return path && text ? [{ variable, path, text }] : []
    })
    .sort((a, b) => a.path.length - b.path.length)
}

/** SERVICE_SECRET and variables of other programs have no `__` and name no section: they are no settings. */
function pathOf(settings: TSchema, variable: string): string[] | undefined {
  if (!variable.startsWith('SERVICE_')) return undefined
  const path = variable.slice('SERVICE_'.length).toLowerCase().split('__')
  return path.length > 1 || schemaAt(settings, path) ? path : undefined
}

const isMapping = (schema: TSchema | undefined) => Type.IsObject(schema) || Type.IsRecord(schema)

function treeOfObject(text: string, variable: string, path: readonly string[], report: Report): Tree {
  const place = { source: variable }
  const tree = parseJson(text)
  if (tree !== undefined) return treeOfJson(tree, place)
  report(place, path.join('.'), `must be a JSON object, or one variable for each setting like ${variable}__…`)
  return { kind: 'faulty', place }
}

/** Undefined when it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
