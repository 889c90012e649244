import { inetOf } from '#databases/drivers/scylla/inet.ts'
import { boundedOf, decimalOf, realOf, singleOf, varintOf } from '#databases/drivers/scylla/numbers.ts'
import { dateOf, durationOf, instantOf, timeOf } from '#databases/drivers/scylla/times.ts'
import {
  type CqlType,
  dataTypes,
  elementOf,
  entryOf,
  fieldsOf,
  fixedSize,
  membersOf,
  type Vector,
  vectorOf,
} from '#databases/drivers/scylla/types.ts'
import { compareOrders, type Order, orderOf } from '#databases/drivers/scylla/value-order.ts'
import { fail } from '#databases/failures.ts'
import { wholeText } from '#databases/request/decimal.ts'
import { parseJson } from '#databases/request/json.ts'
import type { Json, Row } from '#databases/request/request.ts'
import { UUID } from '#kernel/random.ts'

/**
 * Writes a JSON value as bytes of the protocol, by the server's type of the parameter. The library accepts values outside the type
 * (`parseInt`, a double for 64 bits) and cannot write empty nested values, but it passes bytes unchanged. So values that do not fit are
 * refused here, and nothing is rounded. Native protocol, version 4, section 6.
 */
export function bound(value: Json, type: CqlType, column: string): Buffer | null {
  const converted = convert(value, type)
  if (converted !== undefined) return converted
  throw fail('invalid_value', { message: `A value does not fit column ${column}`, details: { column } })
}

/** Undefined when it does not fit. */
function convert(value: Json, type: CqlType): Buffer | null | undefined {
  if (value === null) return null
  const vector = vectorOf(type)
  if (vector !== undefined) return vectorBytes(value, vector)
  switch (type.code) {
    case dataTypes.list:
      return listBytes(elementsOf(value, elementOf(type)))
    case dataTypes.set:
      return listBytes(setOf(value, elementOf(type)))
    case dataTypes.map:
      return mapBytes(value, ...entryOf(type))
    case dataTypes.tuple:
      return tupleBytes(value, membersOf(type))
    case dataTypes.udt:
      return recordBytes(value, type)
  }
  const given = plainText(value)
  if (given === undefined) return undefined
  const text = JSON.isRawJSON(value) && WHOLES.has(type.code) ? wholeText(given) : given
  return SCALARS.get(type.code)?.(text)
}

const plainText = (value: Exclude<Json, null>): string | undefined => {
  if (typeof value === 'string') return value
  if (typeof value !== 'object') return String(value)
  // The types do not know JSON.isRawJSON.
  return JSON.isRawJSON(value) ? (value as { readonly rawJSON: string }).rawJSON : undefined
}

const WHOLES: ReadonlySet<number> = new Set([
  dataTypes.tinyint,
  dataTypes.smallint,
  dataTypes.int,
  dataTypes.bigint,
  dataTypes.counter,
  dataTypes.varint,
])

/** An integer of so many bytes. */
const whole = (size: number) => (text: string) => {
  const number = boundedOf(text, size * 8)
  if (number === undefined) return undefined
  return Buffer.from(
    BigInt.asUintN(size * 8, number)
      .toString(16)
      .padStart(size * 2, '0'),
    'hex',
  )
}
const verbatim = (text: string) => Buffer.from(text)
// The words that PostgreSQL accepts.
const TRUTHS = new Map([
  ...['true', 't', 'yes', 'y', 'on', '1'].map((word) => [word, true] as const),
  ...['false', 'f', 'no', 'n', 'off', '0'].map((word) => [word, false] as const),
])

const SCALARS = new Map<number, (text: string) => Buffer | undefined>([
  [dataTypes.text, verbatim],
  [dataTypes.varchar, verbatim],
  [dataTypes.ascii, (text) => (/^[\0-\x7f]*$/.test(text) ? Buffer.from(text) : undefined)],
  [dataTypes.tinyint, whole(1)],
  [dataTypes.smallint, whole(2)],
  [dataTypes.int, whole(4)],
  [dataTypes.bigint, whole(8)],
  [dataTypes.counter, whole(8)],
  [dataTypes.varint, varintOf],
  [dataTypes.decimal, decimalOf],
  [dataTypes.float, singleOf],
  [dataTypes.double, realOf],
  [dataTypes.boolean, truthOf],
  [dataTypes.uuid, (text) => (UUID.test(text) ? hex(text.replaceAll('-', '')) : undefined)],
  [
    dataTypes.timeuuid,
    (text) => (UUID.test(text) && text[14] === '1' ? hex(text.replaceAll('-', '')) : undefined),
  ],
  [dataTypes.inet, inetOf],
  [dataTypes.blob, (text) => (/^\\x(?:[0-9a-f]{2})*$/i.test(text) ? hex(text.slice(2)) : undefined)],
  [dataTypes.date, dateOf],
  [dataTypes.time, timeOf],
  [dataTypes.timestamp, instantOf],
  [dataTypes.duration, durationOf],
])

function truthOf(text: string): Buffer | undefined {
  const truth = TRUTHS.get(text.trim().toLowerCase())
  return truth === undefined ? undefined : Buffer.from([truth ? 1 : 0])
}

/** A nested value with its length before it, -1 for null. */
function sized(bytes: Buffer | null): Buffer {
  const length = int(bytes === null ? -1 : bytes.length)
  return bytes === null ? length : Buffer.concat([length, bytes])
}

function int(number: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(number)
  return bytes
}

/** CQL has no null inside a collection. */
function elementsOf(value: Json, type: CqlType): Buffer[] | undefined {
  if (!Array.isArray(value)) return undefined
  const elements = value.map((item) => convert(item, type))
  return elements.every(isThere) ? elements : undefined
}

const isThere = (bytes: Buffer | null | undefined): bytes is Buffer => bytes !== undefined && bytes !== null

const listBytes = (elements: readonly Buffer[] | undefined): Buffer | undefined =>
  elements && Buffer.concat([int(elements.length), ...elements.map(sized)])

/** The server sorts most given sets and maps, but not inside the tuples that name several rows. */
function setOf(value: Json, type: CqlType): Buffer[] | undefined {
  const elements = elementsOf(value, type)?.map((bytes) => ({ bytes, order: orderOf(bytes, type) }))
  return elements
    ?.sort((one, other) => compareOrders(one.order, other.order))
    .filter(({ order }, index) => index === 0 || !isSame(order, elements[index - 1]?.order))
    .map(({ bytes }) => bytes)
}

const isSame = (one: Order, other: Order | undefined): boolean =>
  other !== undefined && compareOrders(one, other) === 0

function vectorBytes(value: Json, { element, dimensions }: Vector): Buffer | undefined {
  const elements = elementsOf(value, element)
  if (elements?.length !== dimensions) return undefined
  if (fixedSize(element) !== undefined) return Buffer.concat(elements)
  return Buffer.concat(elements.flatMap((bytes) => [lengthOf(bytes.length), bytes]))
}

/** A variable-length integer of the server: as many leading ones as further bytes. */
function lengthOf(number: number): Buffer {
  let more = 0
  while (number >= 2 ** (7 * (more + 1)) && more < 4) more++
  const bytes = Buffer.alloc(more + 1)
  bytes.writeUIntBE(number, 0, more + 1)
  bytes[0] = (bytes[0] ?? 0) | (0xff00 >> more)
  return bytes
}

function mapBytes(value: Json, keyType: CqlType, valueType: CqlType): Buffer | undefined {
  if (!isObject(value)) return undefined
  const keys = Object.keys(value).map((key) => convert(keyIn(key, keyType), keyType))
  const items = Object.values(value).map((item) => convert(item, valueType))
  if (!keys.every(isThere) || !items.every(isThere)) return undefined
  const entries = keys
    .map((key, index) => ({ key, item: items[index] ?? null, order: orderOf(key, keyType) }))
    .sort((one, other) => compareOrders(one.order, other.order))
  // `{"1": …, "01": …}`: the server would store only one of them.
  if (entries.some(({ order }, index) => index > 0 && isSame(order, entries[index - 1]?.order)))
    return undefined
  return Buffer.concat([int(keys.length), ...entries.flatMap(({ key, item }) => [sized(key), sized(item)])])
}

/** Keys that are not scalars are JSON text, as rows.ts writes them. Other texts stay unchanged and do not fit. */
function keyIn(key: string, type: CqlType): Json {
  if (SCALARS.has(type.code)) return key
  try {
    return parseJson(key)
  } catch {
    return key
  }
}

function tupleBytes(value: Json, members: readonly CqlType[]): Buffer | undefined {
  if (!Array.isArray(value) || value.length !== members.length) return undefined
  return together(members.map((member, index) => convert(value[index], member)))
}

/** A missing field is null. */
function recordBytes(value: Json, type: CqlType): Buffer | undefined {
  if (!isObject(value)) return undefined
  const given = new Map(Object.entries(value))
  const fields = fieldsOf(type)
  if ([...given.keys()].some((name) => !fields.some((field) => field.name === name))) return undefined
  return together(fields.map(({ name, type: of }) => convert(given.get(name) ?? null, of)))
}

const together = (parts: readonly (Buffer | null | undefined)[]): Buffer | undefined =>
  parts.every((part) => part !== undefined) ? Buffer.concat(parts.map(sized)) : undefined

const hex = (digits: string): Buffer => Buffer.from(digits, 'hex')

const isObject = (value: Json): value is Row =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)
