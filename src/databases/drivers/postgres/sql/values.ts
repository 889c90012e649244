import { isRecords } from '#databases/drivers/postgres/sql/composite-values.ts'
import { fail } from '#databases/failures.ts'
import type { Column } from '#databases/plan/catalogue.ts'
import type { Assignment } from '#databases/plan/plan.ts'
import { wholeText } from '#databases/request/decimal.ts'
import type { Comparison, Json, Row } from '#databases/request/request.ts'

/**
 * Writes JSON values as text that the database converts to the column's type. The database refuses values that do not fit, and
 * protocol/errors.ts finds the column of that error.
 */

/** The text of a value to write. JSON columns take any JSON value unchanged: a string becomes a JSON string. */
export function writeText(value: Json, column: Column): string | null {
  if (value === null) return null
  if (column.base === 'json' || column.base === 'jsonb') return jsonText(value, column)
  return valueText(value, column)
}

/** Values of a pipeline come from another database, and may be nested deeper than the stack. */
function jsonText(value: Json, { name }: Column): string {
  try {
    return JSON.stringify(value)
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    const hint = 'The value is nested too deep.'
    throw fail('invalid_value', {
      message: `A value does not fit column ${name}`,
      hint,
      details: { column: name },
      cause,
    })
  }
}

/** The text of a value to compare with. For a JSON column, a string is JSON text, as in the database. */
export function conditionText(
  value: Json,
  { column, operator, columnCast, valueCast }: Comparison<Column>,
): string | null {
  if (value === null) return null
  if (typeof value === 'string') return value
  const cast = valueCast ?? columnCast
  if (cast !== undefined)
    return cast.endsWith('[]') && Array.isArray(value)
      ? arrayLiteral(value, cast.slice(0, -2))
      : numberText(value, cast)
  const list =
    Array.isArray(value) && (operator === 'contains' || operator === 'containedBy' || operator === 'overlaps')
  if (list && column.category === 'S') throw unfit(column, 'an array')
  return valueText(value, column)
}

function valueText(value: Exclude<Json, null>, column: Column): string {
  if (typeof value !== 'object') return plain(value)
  if (JSON.isRawJSON(value)) return numberText(value, column.base)
  if (column.category === 'A' && Array.isArray(value) && !isRecords(column, value))
    return arrayLiteral(value, column.base.slice(1), column.separator)
  if (column.category === 'S') throw unfit(column, Array.isArray(value) ? 'an array' : 'an object')
  return plain(value)
}

const numberText = (value: Exclude<Json, null>, type: string): string =>
  WHOLE.has(type) && JSON.isRawJSON(value) ? wholeText(value.rawJSON) : plain(value)

/** Integer types, by their names in the catalogue and in casts. */
const WHOLE: ReadonlySet<string> = new Set(['int2', 'int4', 'int8', 'smallint', 'integer', 'bigint'])

/** The value in a JSON body for a backend that reads numbers as they are written (PostgREST). */
export function jsonValue(value: Json, { base }: Column): Json {
  if (JSON.isRawJSON(value)) return WHOLE.has(base) ? JSON.rawJSON(wholeText(value.rawJSON)) : value
  return Array.isArray(value) && WHOLE.has(base.slice(1))
    ? value.map((item) => (JSON.isRawJSON(item) ? JSON.rawJSON(wholeText(item.rawJSON)) : item))
    : value
}

/** Numbers and raw JSON with all digits; objects and lists as JSON. */
function plain(value: Exclude<Json, null>): string {
  if (typeof value === 'string') return value
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** `[1, [2]]` → `{1,{2}}`. Elements of a JSON array are JSON. */
function arrayLiteral(items: readonly Json[], element: string, separator = ','): string {
  const parts = items.map((item) => {
    if (item === null) return 'NULL'
    if (element === 'json' || element === 'jsonb') return quoteItem(JSON.stringify(item))
    if (Array.isArray(item)) return arrayLiteral(item, element, separator)
    return quoteItem(numberText(item, element))
  })
  return `{${parts.join(separator)}}`
}

const unfit = (column: Column, what: string) =>
  fail('invalid_value', {
    message: `A value does not fit column ${column.name}`,
    hint: `The column holds text, the value is ${what}.`,
    details: { column: column.name },
  })

const quoteItem = (item: string): string =>
  /["\\]/.test(item) ? `"${item.replace(/["\\]/g, '\\$&')}"` : `"${item}"`

/** Values that a request gives for a column, to find the column of an error that names none. */
export const givenIn = (rows: readonly Row[], { name }: Column): Json[] =>
  rows.flatMap((row) => (Object.hasOwn(row, name) ? [row[name] ?? null] : []))

export const assignedTo = (set: readonly Assignment[], column: Column): Json[] =>
  set.filter((item) => item.column === column).map(({ value }) => value)
