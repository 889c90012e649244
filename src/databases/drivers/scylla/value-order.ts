import { fieldParts, listParts, vectorParts } from '#databases/drivers/scylla/collection-parts.ts'
import { decimalOrder, varintOrder } from '#databases/drivers/scylla/numbers.ts'
import {
  type CqlType,
  dataTypes,
  elementOf,
  entryOf,
  fieldsOf,
  membersOf,
  vectorOf,
} from '#databases/drivers/scylla/types.ts'

/**
 * Values in the server's order, which its classes define (org.apache.cassandra.db.marshal). Values of equal order are the same: 1.5 and
 * 1.50 name the same row of a partition, and a set has only one of them.
 */
export type Order = string | number | readonly Order[]

export function orderOf(bytes: Buffer | null, type: CqlType): Order {
  if (bytes === null) return []
  const vector = vectorOf(type)
  if (vector !== undefined) return vectorParts(bytes, vector).map((part) => orderOf(part, vector.element))
  switch (type.code) {
    case dataTypes.list:
    case dataTypes.set:
      return listParts(bytes).map((part) => orderOf(part, elementOf(type)))
    case dataTypes.map:
      return listParts(bytes, 2).map((part, index) => orderOf(part, entryOf(type)[index % 2 === 0 ? 0 : 1]))
    case dataTypes.tuple:
      return fieldsOrder(bytes, membersOf(type))
    case dataTypes.udt:
      return fieldsOrder(
        bytes,
        fieldsOf(type).map((field) => field.type),
      )
  }
  return bytes.length === 0 ? '' : (SCALARS.get(type.code) ?? plain)(bytes)
}

export function compareOrders(one: Order, other: Order): number {
  if (typeof one !== 'object' || typeof other !== 'object') return one === other ? 0 : one < other ? -1 : 1
  for (const [index, part] of one.entries()) {
    const against = other[index]
    if (against === undefined) return 1
    const found = compareOrders(part, against)
    if (found !== 0) return found
  }
  return one.length - other.length
}

/** A value from before a field was added compares as if it had null there; null comes before all values. */
function fieldsOrder(bytes: Buffer, types: readonly CqlType[]): Order {
  const parts = fieldParts(bytes)
  while (parts.at(-1) === null) parts.pop()
  return parts.map((part, index) => (part === null ? [] : [orderOf(part, types[index] ?? BLOB)]))
}

const BLOB: CqlType = { code: dataTypes.blob }

/** Texts of this encoding compare by their bytes. */
const plain = (bytes: Buffer): string => bytes.toString('latin1')

/** Negative numbers have the first bit set. */
function signed(bytes: Buffer): string {
  const turned = Buffer.from(bytes)
  turned[0] = (turned[0] ?? 0) ^ 0x80
  return plain(turned)
}

/** IEEE 754: all bits of negative numbers are inverted. -0 is before 0, and NaN is last. */
const real = (bytes: Buffer): string =>
  (bytes[0] ?? 0) < 0x80 ? signed(bytes) : plain(Buffer.from(bytes.map((byte) => ~byte)))

/** Time-based UUIDs by their time; others by their version first. */
function uuid(bytes: Buffer): Order {
  const version = (bytes[6] ?? 0) >> 4
  return version === 1 ? [version, timeOf(bytes), plain(bytes.subarray(8))] : [version, plain(bytes)]
}

const timeOf = (bytes: Buffer): string =>
  plain(Buffer.concat([bytes.subarray(6, 8), bytes.subarray(4, 6), bytes.subarray(0, 4)]))

const timeUuid = (bytes: Buffer): Order => [
  timeOf(bytes),
  plain(Buffer.from(bytes.subarray(8).map((byte) => byte ^ 0x80))),
]

const SCALARS = new Map<number, (bytes: Buffer) => Order>([
  [dataTypes.tinyint, signed],
  [dataTypes.smallint, signed],
  [dataTypes.int, signed],
  [dataTypes.bigint, signed],
  [dataTypes.timestamp, signed],
  [dataTypes.varint, varintOrder],
  [dataTypes.decimal, decimalOrder],
  [dataTypes.float, real],
  [dataTypes.double, real],
  [dataTypes.uuid, uuid],
  [dataTypes.timeuuid, timeUuid],
])
