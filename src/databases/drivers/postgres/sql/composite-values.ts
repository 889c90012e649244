import type { Column } from '#databases/plan/catalogue.ts'
import type { Json } from '#databases/request/request.ts'

/** Composite values given as objects, and arrays of them: the database builds them from JSON. */

export const isRecord = ({ category }: Column, value: Json): boolean => category === 'C' && isObject(value)

export const isRecords = ({ category, base }: Column, value: Json): boolean =>
  category === 'A' && base !== '_json' && base !== '_jsonb' && Array.isArray(value) && holdsObject(value)

const holdsObject = (items: readonly Json[]): boolean =>
  items.some((item) => (Array.isArray(item) ? holdsObject(item) : isObject(item)))

const isObject = (value: Json): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)

/** SQL that builds the value of the column from its JSON `text`; undefined when no value is given as an object. */
export function builtText(column: Column, values: readonly Json[], text: string): string | undefined {
  const json = `${text}::pg_catalog.jsonb`
  if (values.some((value) => isRecord(column, value)))
    return `pg_catalog.jsonb_populate_record(null::${column.cast}, ${json})`
  if (!values.some((value) => isRecords(column, value))) return undefined
  // There is no such function for arrays, but a field of a record may be an array.
  const record = `pg_catalog.jsonb_to_record(pg_catalog.jsonb_build_object('v', ${json}))`
  return `(select r.v from ${record} as r(v ${column.cast}))`
}
