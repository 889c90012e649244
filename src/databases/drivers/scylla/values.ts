import { isIP } from 'node:net'
import { types } from 'cassandra-driver'
import { boundedOf, decimalOf, realOf, singleOf, varintOf } from '#databases/drivers/scylla/numbers.ts'
import { dateOf, durationOf, instantOf, timeOf } from '#databases/drivers/scylla/times.ts'
import {
  type CqlType,
  dataTypes,
  dimensionsOf,
  elementOf,
  entryOf,
  fieldsOf,
  isDuration,
  membersOf,
} from '#databases/drivers/scylla/types.ts'
import { fail } from '#databases/failures.ts'
import type { Json, Row } from '#databases/plan.ts'
import { wholeText } from '#databases/values.ts'

/**
 * A JSON value as the library binds it, by the type that the server gave the parameter. The library takes much that is not a
 * value of the type (`parseInt`, a double for 64 bits); so what does not fit is found here, and nothing is rounded.
 */
export function bound(value: Json, type: CqlType, column: string): unknown {
  const converted = convert(value, type)
  if (converted !== undefined) return converted
  throw fail('invalid_value', { message: `A value does not fit column ${column}`, details: { column } })
}

/** Undefined when it does not fit. */
function convert(value: Json, type: CqlType): unknown {
  if (value === null) return null
  const dimensions = dimensionsOf(type)
  if (dimensions !== undefined) return vectorOf(value, dimensions)
  switch (type.code) {
    case dataTypes.list:
    case dataTypes.set:
      return elementsOf(value, elementOf(type))
    case dataTypes.map:
      return entriesOf(value, ...entryOf(type))
    case dataTypes.tuple:
      return tupleOf(value, membersOf(type))
    case dataTypes.udt:
      return recordOf(value, type)
  }
  const given = textOf(value)
  if (given === undefined) return undefined
  const text = JSON.isRawJSON(value) && wholes.has(type.code) ? wholeText(given) : given
  return isDuration(type) ? durationOf(text) : scalars.get(type.code)?.(text)
}

const textOf = (value: Exclude<Json, null>): string | undefined => {
  if (typeof value === 'string') return value
  if (typeof value !== 'object') return String(value)
  // What JSON.isRawJSON says, the types do not know.
  return JSON.isRawJSON(value) ? (value as { readonly rawJSON: string }).rawJSON : undefined
}

const wholes: ReadonlySet<number> = new Set([
  dataTypes.tinyint,
  dataTypes.smallint,
  dataTypes.int,
  dataTypes.bigint,
  dataTypes.counter,
  dataTypes.varint,
])

const small = (bits: number) => (text: string) => {
  const number = boundedOf(text, bits)
  return number === undefined ? undefined : Number(number)
}
const large = (text: string) => boundedOf(text, 64)
const verbatim = (text: string) => text
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
// The words that PostgreSQL takes.
const truths = new Map([
  ...['true', 't', 'yes', 'y', 'on', '1'].map((word) => [word, true] as const),
  ...['false', 'f', 'no', 'n', 'off', '0'].map((word) => [word, false] as const),
])

const scalars = new Map<number, (text: string) => unknown>([
  [dataTypes.text, verbatim],
  [dataTypes.varchar, verbatim],
  [dataTypes.ascii, (text) => (/^[\0-\x7f]*$/.test(text) ? text : undefined)],
  [dataTypes.tinyint, small(8)],
  [dataTypes.smallint, small(16)],
  [dataTypes.int, small(32)],
  [dataTypes.bigint, large],
  [dataTypes.counter, large],
  [dataTypes.varint, varintOf],
  [dataTypes.decimal, decimalOf],
  [dataTypes.float, singleOf],
  [dataTypes.double, realOf],
  [dataTypes.boolean, (text) => truths.get(text.trim().toLowerCase())],
  [dataTypes.uuid, (text) => (uuid.test(text) ? types.Uuid.fromString(text) : undefined)],
  [
    dataTypes.timeuuid,
    (text) => (uuid.test(text) && text[14] === '1' ? types.TimeUuid.fromString(text) : undefined),
  ],
  [
    dataTypes.inet,
    (text) => (isIP(text) && !text.includes('%') ? types.InetAddress.fromString(text) : undefined),
  ],
  [
    dataTypes.blob,
    (text) => (/^\\x(?:[0-9a-f]{2})*$/i.test(text) ? Buffer.from(text.slice(2), 'hex') : undefined),
  ],
  [dataTypes.date, dateOf],
  [dataTypes.time, timeOf],
  [dataTypes.timestamp, instantOf],
])

/** CQL has no null inside of a collection. */
function elementsOf(value: Json, type: CqlType): unknown[] | undefined {
  if (!Array.isArray(value)) return undefined
  const elements = value.map((item) => convert(item, type))
  return elements.some((element) => element === undefined || element === null) ? undefined : elements
}

function vectorOf(value: Json, dimensions: number): types.Vector | undefined {
  const elements = elementsOf(value, { code: dataTypes.float })
  return elements?.length === dimensions ? new types.Vector(elements) : undefined
}

function entriesOf(value: Json, keyType: CqlType, valueType: CqlType): Map<unknown, unknown> | undefined {
  if (!isObject(value)) return undefined
  const entries = Object.entries(value).map(
    ([key, item]) => [convert(key, keyType), convert(item, valueType)] as const,
  )
  const isWhole = entries.every((entry) => entry.every((part) => part !== undefined && part !== null))
  return isWhole ? new Map(entries) : undefined
}

function tupleOf(value: Json, members: readonly CqlType[]): types.Tuple | undefined {
  if (!Array.isArray(value) || value.length !== members.length) return undefined
  const elements = members.map((member, index) => convert(value[index], member))
  return elements.includes(undefined) ? undefined : types.Tuple.fromArray(elements)
}

/** A missing field is null; the library looks fields up by their names, so nothing is inherited. */
function recordOf(value: Json, type: CqlType): object | undefined {
  if (!isObject(value)) return undefined
  const given = new Map(Object.entries(value))
  const fields = fieldsOf(type)
  if ([...given.keys()].some((name) => !fields.some((field) => field.name === name))) return undefined
  const record: Record<string, unknown> = Object.create(null)
  for (const { name, type: of } of fields) {
    record[name] = convert(given.get(name) ?? null, of)
    if (record[name] === undefined) return undefined
  }
  return record
}

const isObject = (value: Json): value is Row =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)
