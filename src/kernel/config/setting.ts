import { type TObject, type TProperties, type TSchema, Type } from 'typebox'
import {
  choiceForm,
  durationForm,
  type Form,
  flagForm,
  integerForm,
  parseDuration,
  parseSize,
  type Range,
  sizeForm,
  textForm,
} from './forms.ts'

/** The part of a value that `gatehouse config show` hides: all of it, or the secrets of a URL (`maskedUrl`). */
export type Secret = 'all' | 'password'

/** Facts that a default may depend on. */
type Facts = {
  readonly production: boolean
  /** The value of another setting, by its dotted name; of one whose default is fixed. */
  readonly value: (setting: string) => unknown
}

type DerivedDefault<T> = { readonly says: string; readonly from: (facts: Facts) => T }

type SettingOptions<T> = {
  readonly default?: T
  /** A default that depends on facts. */
  readonly derived?: DerivedDefault<T>
  /** For an optional setting: the effect when it is absent, in words. */
  readonly absent?: string
  readonly secret?: Secret
  /** Another variable for the setting; SERVICE_… takes precedence. */
  readonly alias?: string
  /** The problem of a variable that is set and empty, where that is a mistake and not the same as absent. */
  readonly emptied?: string
}

/**
 * The annotations that make a TypeBox schema a setting. The form of a list
 * is that of its items.
 */
export type Setting = SettingOptions<unknown> & { readonly description: string; readonly form: Form<unknown> }

export const isSetting = (schema: TSchema): schema is TSchema & Setting => 'form' in schema

export const text = (
  description: string,
  more: SettingOptions<string> = {},
  form: Form<string> = textForm(),
) => Type.String({ description, form, ...more })

export const flag = (description: string, more: SettingOptions<boolean> = {}) =>
  Type.Boolean({ description, form: flagForm, ...more })

export const integer = (description: string, range: Range, more: SettingOptions<number> = {}) =>
  Type.Integer({ description, form: integerForm(range), minimum: range.min, maximum: range.max, ...more })

export const choice = <const T extends string[]>(
  description: string,
  values: readonly [...T],
  more: SettingOptions<T[number]> = {},
) => Type.Enum(values, { description, form: choiceForm<T[number]>(values), ...more })

/** As texts: the default, the smallest and the largest value. */
type DefaultAndRange = readonly [value: string, min: string, max: string]

/** In milliseconds. */
export const duration = (description: string, written: DefaultAndRange) =>
  measure(description, written, parseDuration, durationForm)

/** In milliseconds. `absent`: the effect without it, in words. */
export const optionalDuration = (
  description: string,
  [min, max]: readonly [string, string],
  absent: string,
) => Type.Optional(Type.Integer({ ...ranged(description, [min, max], parseDuration, durationForm), absent }))

/** In bytes. */
export const size = (description: string, written: DefaultAndRange) =>
  measure(description, written, parseSize, sizeForm)

type Parse = (text: string) => number | undefined

type RangeForm = (range: Range) => Form<number>

const measure = (description: string, [value, min, max]: DefaultAndRange, parse: Parse, form: RangeForm) =>
  Type.Integer({
    ...ranged(description, [min, max], parse, form),
    default: readMeasure(value, parse, description),
  })

function ranged(description: string, [min, max]: readonly [string, string], parse: Parse, form: RangeForm) {
  const [minimum, maximum] = [readMeasure(min, parse, description), readMeasure(max, parse, description)]
  return { description, form: form({ min: minimum, max: maximum }), minimum, maximum }
}

function readMeasure(text: string, parse: Parse, description: string): number {
  const parsed = parse(text)
  if (parsed === undefined) throw new Error(`${text} is no value of the setting: ${description}`)
  return parsed
}

/** The defaults of settings that have one each. */
export const defaultsOf = <T extends TProperties>(settings: T): Readonly<Record<keyof T, number>> =>
  // Every setting that is passed here is a number with a default; its type does not show the default.
  Object.fromEntries(
    Object.entries(settings).map(([name, setting]) => [name, (setting as TSchema & Setting).default]),
  ) as Record<keyof T, number>

/** A list; empty by default, unless a default is given. `secret` is that of each item. */
export const list = (
  description: string,
  item: Form<string>,
  otherwise: string[] = [],
  more: { readonly secret?: Secret } = {},
) => Type.Array(Type.String(), { description, form: item, default: otherwise, ...more })

/** A list of sections, empty by default. The environment sets it as one JSON text. */
export const listOf = <T extends TObject>(description: string, entry: T) =>
  Type.Array(entry, { description, default: [] })

/** The schema of the entries of a list made by `listOf`. */
export const entryOf = (schema: TSchema): TSchema | undefined =>
  Type.IsArray(schema) && !isSetting(schema) ? schema.items : undefined

export const section = <T extends TProperties>(description: string, settings: T) =>
  Type.Object(settings, { description, additionalProperties: false })

/** Entries under names that the operator chooses. `builtIn` exists without an entry, unless its entry is `false`. */
export const named = <T extends TSchema>(
  description: string,
  name: Form<string>,
  entry: T,
  builtIn?: string,
) => Type.Record(Type.String(), entry, { description, name, builtIn })

/** The name in a map made by `named` whose entry may be `false`. */
export const builtInName = (schema: TSchema): string | undefined =>
  (schema as TSchema & { builtIn?: string }).builtIn // only `named` makes maps

/** The form of the names in a map made by `named`. */
export const nameForm = (schema: TSchema): Form<string> =>
  // Only `named` makes maps, and it sets this.
  (schema as TSchema & { name: Form<string> }).name
