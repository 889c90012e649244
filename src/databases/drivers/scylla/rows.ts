import type { CellColumn, Cells } from '#databases/drivers/scylla/cells.ts'
import { fieldParts, listParts, vectorParts } from '#databases/drivers/scylla/collection-parts.ts'
import { inetText } from '#databases/drivers/scylla/inet.ts'
import { decimalText, realText, singleText, varintText } from '#databases/drivers/scylla/numbers.ts'
import { clockText, dateText, durationText, instantText } from '#databases/drivers/scylla/times.ts'
import {
  type CqlType,
  dataTypes,
  elementOf,
  entryOf,
  fieldsOf,
  membersOf,
  type Vector,
  vectorOf,
} from '#databases/drivers/scylla/types.ts'

/**
 * Writes rows as JSON by the type of each column, in the same form as the PostgreSQL driver, directly from the server's bytes. `SELECT
 * JSON` would save this work, but it writes times, blobs, addresses and maps in other forms, so that its text would have to be parsed
 * again.
 */
type Write = (bytes: Buffer) => string

/** A column of the result: the position of its cell, the beginning of its member with the name, and the writer of its values. */
export type ColumnWriter = { readonly at: number; readonly head: string; readonly write: Write }

export function rowText(row: Cells, columns: readonly ColumnWriter[], stripNulls: boolean): string {
  let text = ''
  for (const { at, head, write } of columns) {
    const value = row[at]
    const written = value === null || value === undefined ? 'null' : write(value)
    if (!stripNulls || written !== 'null') text += `,${head}${written}`
  }
  return `{${text.slice(1)}}`
}

/** A column under its name in the result. */
export const columnWriter = ({ type }: Pick<CellColumn, 'type'>, at: number, name: string): ColumnWriter => ({
  at,
  head: `${JSON.stringify(name)}:`,
  write: writerOf(type),
})

/** Types for which zero bytes are null. The server has such values, but they can only be written by hand. */
export function writerOf(type: CqlType): Write {
  const write = plainWriterOf(type)
  return HAS_EMPTY.has(type.code) ? write : (bytes) => (bytes.length === 0 ? 'null' : write(bytes))
}

const HAS_EMPTY: ReadonlySet<number> = new Set([
  dataTypes.text,
  dataTypes.varchar,
  dataTypes.ascii,
  dataTypes.blob,
  dataTypes.custom,
  dataTypes.udt,
  dataTypes.tuple,
])

function plainWriterOf(type: CqlType): Write {
  const vector = vectorOf(type)
  if (vector !== undefined) return vectors(vector)
  switch (type.code) {
    case dataTypes.list:
    case dataTypes.set:
      return arrays(writerOf(elementOf(type)))
    case dataTypes.map:
      return objects(...entryOf(type))
    case dataTypes.tuple:
      return tuples(membersOf(type).map(writerOf))
    case dataTypes.udt:
      return records(type)
  }
  return SCALARS.get(type.code) ?? blobs
}

const quoted =
  (write: Write): Write =>
  (bytes) =>
    `"${write(bytes)}"`
const text: Write = (bytes) => JSON.stringify(bytes.toString())
const large: Write = (bytes) => String(bytes.readBigInt64BE())
const uuids: Write = (bytes) =>
  bytes
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '"$1-$2-$3-$4-')
    .concat('"')
const blobs: Write = (bytes) => `"\\\\x${bytes.toString('hex')}"`

const SCALARS = new Map<number, Write>([
  [dataTypes.text, text],
  [dataTypes.varchar, text],
  [dataTypes.ascii, text],
  [dataTypes.tinyint, (bytes) => String(bytes.readInt8())],
  [dataTypes.smallint, (bytes) => String(bytes.readInt16BE())],
  [dataTypes.int, (bytes) => String(bytes.readInt32BE())],
  [dataTypes.bigint, large],
  [dataTypes.counter, large],
  [dataTypes.varint, varintText],
  [dataTypes.decimal, decimalText],
  [dataTypes.float, (bytes) => singleText(bytes.readFloatBE())],
  [dataTypes.double, (bytes) => realText(bytes.readDoubleBE())],
  [dataTypes.boolean, (bytes) => String(bytes[0] !== 0)],
  [dataTypes.uuid, uuids],
  [dataTypes.timeuuid, uuids],
  [dataTypes.inet, quoted(inetText)],
  [dataTypes.date, quoted(dateText)],
  [dataTypes.time, quoted(clockText)],
  [dataTypes.timestamp, quoted(instantText)],
  [dataTypes.duration, quoted(durationText)],
])

const orNull =
  (write: Write) =>
  (bytes: Buffer | null | undefined): string =>
    bytes === null || bytes === undefined ? 'null' : write(bytes)

const arrays =
  (write: Write): Write =>
  (bytes) =>
    `[${listParts(bytes).map(orNull(write)).join()}]`

function vectors(vector: Vector): Write {
  const write = writerOf(vector.element)
  return (bytes) => `[${vectorParts(bytes, vector).map(write).join()}]`
}

/** Missing members are null. */
const tuples =
  (writes: readonly Write[]): Write =>
  (bytes) => {
    const parts = fieldParts(bytes)
    return `[${writes.map((write, index) => orNull(write)(parts[index])).join()}]`
  }

/** Keys that are not text are written as their JSON text. */
function objects(keyType: CqlType, valueType: CqlType): Write {
  const [writeKey, write] = [orNull(writerOf(keyType)), orNull(writerOf(valueType))]
  const name = (key: Buffer | null | undefined) => {
    const json = writeKey(key)
    return json.startsWith('"') ? json : JSON.stringify(json)
  }
  return (bytes) => {
    const parts = listParts(bytes, 2)
    const entries = Array.from({ length: parts.length / 2 }, (_, index) => index * 2)
    return `{${entries.map((at) => `${name(parts[at])}:${write(parts[at + 1])}`).join()}}`
  }
}

/** Fields that were added to the type later are null. */
function records(type: CqlType): Write {
  const members = fieldsOf(type).map(({ name, type: of }) => ({
    head: `${JSON.stringify(name)}:`,
    write: orNull(writerOf(of)),
  }))
  return (bytes) => {
    const parts = fieldParts(bytes)
    return `{${members.map(({ head, write }, index) => head + write(parts[index])).join()}}`
  }
}
