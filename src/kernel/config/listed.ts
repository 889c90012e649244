import { type TSchema, Type } from 'typebox'
import { asValues, type ConfigFacts } from './defaults.ts'
import { entryOf, isSetting } from './setting.ts'
import { defaultOf, type SettingDescription, show } from './show.ts'

/** A setting of the running configuration. */
export type ListedSetting = Pick<SettingDescription, 'setting' | 'default' | 'absent'> & {
  /** As it is written in the file, secrets masked; undefined when it is absent. */
  readonly value: string | undefined
  readonly isSecret: boolean
  /** `default`, or where it is set: a line of the file, a variable or an option. */
  readonly source: string
}

/** Every setting, also those that are left to their defaults, in the order of the schema. A list without entries is one line. */
export const listed = (settings: TSchema, config: ConfigFacts): readonly ListedSetting[] =>
  below(settings, config, '', (setting) => sourceOf(config, setting))

function below(
  schema: TSchema,
  value: unknown,
  setting: string,
  source: (setting: string) => string,
): readonly ListedSetting[] {
  const inner = innerOf(schema, value)
  if (inner !== undefined)
    return inner.flatMap(([name, schema, value]) => below(schema, value, join(setting, name), source))
  const from = source(setting)
  if (!isSetting(schema)) return [{ setting, value: '', isSecret: false, source: from, absent: 'none' }]
  const isSecret = schema.secret !== undefined
  return [{ setting, value: written(show(schema, value)), isSecret, source: from, ...defaultOf(schema) }]
}

type Inner = readonly (readonly [name: string, schema: TSchema, value: unknown])[]

/** Undefined for a setting, and for a list of sections that has none. */
function innerOf(schema: TSchema, value: unknown): Inner | undefined {
  if (Type.IsObject(schema))
    return Object.entries(schema.properties).map(([name, inner]) => [name, inner, asValues(value)[name]])
  if (Type.IsRecord(schema)) {
    const entry = Type.RecordValue(schema)
    return Object.entries(asValues(value)).map(([name, inner]) => [name, entry, inner])
  }
  const entry = entryOf(schema)
  if (entry === undefined || !Array.isArray(value) || value.length === 0) return undefined
  return value.map((inner, index) => [`[${index}]`, entry, inner])
}

const join = (path: string, name: string): string =>
  path === '' || name.startsWith('[') ? `${path}${name}` : `${path}.${name}`

/** Of the setting, or of the list that it is in. */
function sourceOf({ sources }: ConfigFacts, setting: string): string {
  const list = setting.replace(/\[.*/, '')
  return (Object.hasOwn(sources, list) ? sources[list] : undefined) ?? 'default'
}

function written(value: unknown): string | undefined {
  if (value === undefined) return undefined
  return Array.isArray(value) ? value.join(', ') : String(value)
}
