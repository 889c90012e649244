import { isObject } from '../json.ts'

/** The columns of a request: a text goes as it is, an object is compiled to the same grammar. To the service, none would be all of them. */
export function columnsOf(selection: unknown, of = 'select'): readonly string[] {
  if (typeof selection === 'string') return [selection]
  const columns = Object.entries(selection ?? {}).flatMap(([key, value]) => columnOf(key, value))
  if (columns.length === 0) throw new TypeError(`${of} has no columns`)
  return columns
}

type Nested = {
  readonly select: object
  readonly from?: string
  readonly hint?: string
  readonly schema?: string
}

function columnOf(key: string, value: unknown): readonly string[] {
  if (value === undefined || value === false) return []
  if (value === true) return [key === '*' ? key : quoted(key)]
  if (typeof value === 'string') return [`${quoted(key)}:${quoted(value)}`]
  if (!isObject(value)) throw new TypeError(`${key} is true, a name or an object`)
  const { select, from = key, hint, schema } = isNested(value) ? value : { select: value }
  const table = schema === undefined ? quoted(from) : `${quoted(schema)}.${quoted(from)}`
  const choice = hint === undefined ? '' : `!${quoted(hint)}`
  return [`${quoted(key)}:${table}${choice}(${columnsOf(select, key)})`]
}

/** `{ select: { … }, from: 'table' }`. A column may be called `select`; then its value is no object. */
const isNested = (value: object): value is Nested => 'select' in value && isObject(value.select)

/** Names of columns that are read beside those of the caller. They take all of the 63 bytes that a name may have, so that no other column has them. */
export const hiddenName = (index: number): string => `${index}`.padStart(63, '_')

/** As the service reads names with other characters. */
export const quoted = (name: string): string =>
  /^[A-Za-z_][A-Za-z0-9_$]*$/.test(name) ? name : `"${name.replace(/["\\]/g, '\\$&')}"`
