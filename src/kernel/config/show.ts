import { type TSchema, Type } from 'typebox'
import { asValues, mapOf, type Values } from './defaults.ts'
import { variableOf } from './environment.ts'
import { isInList, outline } from './outline.ts'
import { entryOf, isSetting, type Secret, type Setting } from './setting.ts'

/** The values of `config` as they are written in the file, without secrets. */
export function masked(settings: TSchema, config: unknown): Values {
  return asValues(show(settings, config))
}

/** A value below `schema` as it is written in the file, without secrets; undefined when it is absent. */
export function show(schema: TSchema, value: unknown): unknown {
  if (Type.IsObject(schema)) {
    const shown = Object.entries(schema.properties).map(([name, inner]) => [
      name,
      show(inner, asValues(value)[name]),
    ])
    return Object.fromEntries(shown.filter(([, inner]) => inner !== undefined))
  }
  if (Type.IsRecord(schema)) {
    const entry = Type.RecordValue(schema)
    return mapOf(Object.entries(asValues(value)).map(([name, inner]) => [name, show(entry, inner)]))
  }
  const entry = entryOf(schema)
  if (entry !== undefined && Array.isArray(value)) return value.map((inner) => show(entry, inner))
  return value === undefined || !isSetting(schema) ? undefined : write(schema, value)
}

function write({ form, secret }: Setting, value: unknown): unknown {
  const one = (item: unknown) => (secret ? mask(String(item), secret) : form.write(item))
  return Array.isArray(value) ? value.map(one) : one(value)
}

const STARS = '***'

const mask = (value: string, secret: Secret): string => (secret === 'password' ? maskedUrl(value) : STARS)

/**
 * A URL without its secrets: its password; its query and fragment, which may contain another `password=`; and in an http URL
 * a user without password, and path segments as long as a key.
 */
export function maskedUrl(text: string): string {
  const url = URL.parse(text)
  if (!url) return STARS
  const isHttp = /^https?:$/.test(url.protocol)
  if (isHttp && url.username !== '' && url.password === '') url.username = STARS
  if (url.password !== '') url.password = STARS
  if (url.search !== '') url.search = STARS
  if (url.hash !== '') url.hash = STARS
  if (isHttp) url.pathname = url.pathname.replace(LONG_SEGMENT, STARS)
  return url.href
}

const LONG_SEGMENT = /[^/]{16,}/g

export type SettingDescription = {
  /** Dotted, with NAME for a name that the operator chooses, and [] for an entry of a list. */
  readonly setting: string
  readonly description: string
  /** Absent inside of a list, which is set as a whole. */
  readonly environment?: string
  /** Absent for a section. */
  readonly type?: string
  /** As it is written in the file. */
  readonly default?: string
  /** The effect when it is absent, in words, where there is no fixed default. */
  readonly absent?: string
}

/** Sections and settings in the order of the schema. */
export function described(settings: TSchema): SettingDescription[] {
  return outline(settings).map(({ path, schema }) => {
    const setting = path.join('.')
    const variables = isInList(path) ? [] : [variableOf(setting)]
    if (!isSetting(schema))
      return {
        setting,
        ...inEnvironment(variables),
        description: descriptionOf(schema),
        ...(entryOf(schema) !== undefined && { type: 'list of sections', absent: 'none' }),
      }
    const { description, alias, form } = schema
    const type = Type.IsArray(schema) ? `list; items: ${form.name}` : form.name
    const all = alias ? [...variables, alias] : variables
    return { setting, description, ...inEnvironment(all), type, ...defaultOf(schema) }
  })
}

const inEnvironment = (variables: readonly string[]) =>
  variables.length === 0 ? {} : { environment: variables.join(', ') }

// Every section is created with a description.
const descriptionOf = (schema: TSchema) => (schema as TSchema & { description: string }).description

export function defaultOf({
  default: value,
  derived,
  absent,
  form,
}: Setting): Pick<SettingDescription, 'default' | 'absent'> {
  if (Array.isArray(value))
    return value.length === 0 ? { absent: 'none' } : { default: value.map(form.write).join(', ') }
  return value === undefined
    ? { absent: derived?.says ?? absent ?? 'required' }
    : { default: String(form.write(value)) }
}
