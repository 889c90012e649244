import { type TSchema, Type } from 'typebox'
import { asValues, mapOf, type Values } from './defaults.ts'
import { variableOf } from './environment.ts'
import { outline } from './outline.ts'
import { isSetting, type Secret, type Setting } from './setting.ts'

/** The values of `config` as one would write them, without its secrets. */
export function masked(settings: TSchema, config: unknown): Values {
  return asValues(show(settings, config))
}

function show(schema: TSchema, value: unknown): unknown {
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
  return value === undefined || !isSetting(schema) ? undefined : write(schema, value)
}

function write({ form, secret }: Setting, value: unknown): unknown {
  if (secret) return mask(String(value), secret)
  return Array.isArray(value) ? value.map(form.write) : form.write(value)
}

const STARS = '***'

const mask = (value: string, secret: Secret): string => (secret === 'password' ? maskedUrl(value) : STARS)

/**
 * A URL without its secrets: its password; its query and fragment, which may hold another `password=`; and where it is no
 * database's, a user without password and what in its path is as long as a key.
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
  /** Dotted, with NAME for a name of one's choice. */
  readonly setting: string
  readonly description: string
  readonly environment: string
  /** A section has none. */
  readonly type?: string
  /** As one would write it. */
  readonly default?: string
  /** What holds without it, in words, when that is no fixed value. */
  readonly absent?: string
}

/** Sections and settings in the order of the schema. */
export function described(settings: TSchema): SettingDescription[] {
  return outline(settings).map(({ path, schema }) => {
    const setting = path.join('.')
    const environment = variableOf(setting)
    if (!isSetting(schema)) return { setting, environment, description: descriptionOf(schema) }
    const { description, alias, form } = schema
    const type = Type.IsArray(schema) ? `list; items: ${form.name}` : form.name
    return {
      setting,
      description,
      environment: alias ? `${environment}, ${alias}` : environment,
      type,
      ...defaultOf(schema),
    }
  })
}

// Every section is made with one.
const descriptionOf = (schema: TSchema) => (schema as TSchema & { description: string }).description

function defaultOf({
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
