import { type TSchema, Type } from 'typebox'
import { entryOf, isSetting, type Setting } from './setting.ts'

export type Values = { [name: string]: unknown }

/** Facts about the configuration that are no settings. */
export type ConfigFacts = {
  readonly production: boolean
  /** False with `clients.default: false`. */
  readonly builtInClient: boolean
  /** The source of each setting that is not left to its default, by its dotted name: `gatehouse.yaml:3`, `SERVICE_SERVER__PORT`, `--port`. */
  readonly sources: Readonly<Record<string, string>>
}

/** Adds every default to the given values: first the fixed ones, then those that depend on other settings. */
export function fillDefaults(schema: TSchema, given: Values, whole: ConfigFacts): Values {
  const plain = fill(schema, given, (setting) => setting.default)
  const facts = { ...whole, value: (setting: string) => valueAt(plain, setting) }
  return { ...asValues(fill(schema, plain, (setting) => setting.derived?.from(facts))), ...whole }
}

type Otherwise = (setting: Setting) => unknown

function fill(schema: TSchema, given: unknown, otherwise: Otherwise): unknown {
  if (Type.IsObject(schema)) {
    const filled = Object.entries(schema.properties).map(
      ([name, inner]) => [name, fill(inner, asValues(given)[name], otherwise)] as const,
    )
    return Object.fromEntries(filled.filter(([, value]) => value !== undefined))
  }
  if (Type.IsRecord(schema)) {
    const entry = Type.RecordValue(schema)
    return mapOf(
      Object.entries(asValues(given)).map(([name, inner]) => [name, fill(entry, inner, otherwise)]),
    )
  }
  const entry = entryOf(schema)
  if (entry !== undefined) return entriesIn(given).map((inner) => fill(entry, inner, otherwise))
  return given ?? (isSetting(schema) ? otherwise(schema) : undefined)
}

const entriesIn = (given: unknown): readonly unknown[] => (Array.isArray(given) ? given : [])

/** Without a prototype, so that a name of a request such as `constructor` finds nothing that is not configured. */
export const mapOf = (entries: readonly (readonly [string, unknown])[]): Values =>
  Object.assign(Object.create(null), Object.fromEntries(entries))

/** The value of a setting by its dotted name. */
const valueAt = (values: unknown, setting: string): unknown =>
  setting.split('.').reduce((inner, name) => asValues(inner)[name], values)

const isValues = (value: unknown): value is Values => typeof value === 'object' && value !== null

export const asValues = (value: unknown): Values => (isValues(value) ? value : {})
