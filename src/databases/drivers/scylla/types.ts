import { types } from 'cassandra-driver'

/** A type as the server sends it with a prepared statement and with rows. `info` depends on the code. */
export type CqlType = { readonly code: number; readonly info?: unknown }

export const { dataTypes } = types

/** The protocol has no number for vectors. Its own numbers have two bytes. */
const VECTOR = 0x10000

/** The type of the elements of a list or a set. */
export const elementOf = (type: CqlType): CqlType => type.info as CqlType // as the protocol has it

export const entryOf = (type: CqlType): readonly [key: CqlType, value: CqlType] =>
  type.info as readonly [CqlType, CqlType] // as the protocol has it

/** The types of the members of a tuple. */
export const membersOf = (type: CqlType): readonly CqlType[] => type.info as readonly CqlType[] // as the protocol has it

type Field = { readonly name: string; readonly type: CqlType }

/** The fields of a user-defined type. */
export const fieldsOf = (type: CqlType): readonly Field[] =>
  (type.info as { readonly fields: readonly Field[] }).fields // as the protocol has it

export type Vector = { readonly element: CqlType; readonly dimensions: number }

export const vectorOf = ({ code, info }: CqlType): Vector | undefined =>
  code === VECTOR ? (info as Vector) : undefined // as it is made here

/** Bytes of every value of the type; undefined for variable length, which vectors write with a length. */
export function fixedSize(type: CqlType): number | undefined {
  const vector = vectorOf(type)
  if (vector === undefined) return SIZES.get(type.code)
  const size = fixedSize(vector.element)
  return size === undefined ? undefined : size * vector.dimensions
}

/** Types that the server treats as fixed; it writes some others of one size with a length. */
const SIZES = new Map<number, number>([
  [dataTypes.boolean, 1],
  [dataTypes.float, 4],
  [dataTypes.int, 4],
  [dataTypes.double, 8],
  [dataTypes.bigint, 8],
  [dataTypes.timestamp, 8],
  [dataTypes.uuid, 16],
  [dataTypes.timeuuid, 16],
])

/**
 * Types without a number in the protocol are sent as the server's class: `…VectorType(…FloatType , 3)`. Undefined for an unknown class.
 */
export function typeOfClass(text: string): CqlType | undefined {
  const bracket = `${text}(`.indexOf('(')
  const name = text.slice(0, bracket).trim().replace('org.apache.cassandra.db.marshal.', '')
  const inner = text.slice(bracket + 1, text.lastIndexOf(')'))
  const simple = CLASSES.get(name)
  if (simple !== undefined) return { code: simple }
  if (inner === '') return undefined
  const parts = partsOf(inner)
  if (name === 'FrozenType' || name === 'ReversedType') return typeOfClass(inner)
  if (name === 'VectorType') return vectorType(parts)
  if (name === 'UserType') return recordType(parts)
  const types = parts.map(typeOfClass)
  if (!types.every((type) => type !== undefined)) return undefined
  if (name === 'ListType') return { code: dataTypes.list, info: types[0] }
  if (name === 'SetType') return { code: dataTypes.set, info: types[0] }
  if (name === 'MapType') return { code: dataTypes.map, info: types }
  return name === 'TupleType' ? { code: dataTypes.tuple, info: types } : undefined
}

function vectorType([of = '', dimensions = '']: readonly string[]): CqlType | undefined {
  const element = typeOfClass(of)
  return element && { code: VECTOR, info: { element, dimensions: Number(dimensions) } satisfies Vector }
}

/** Keyspace, name, and fields as `name:type`; names are written in hex. */
function recordType([, , ...given]: readonly string[]): CqlType | undefined {
  const fields = given.map((field) => {
    const at = field.indexOf(':')
    const name = Buffer.from(field.slice(0, at).trim(), 'hex').toString()
    return { name, type: typeOfClass(field.slice(at + 1)) }
  })
  return fields.every(({ type }) => type !== undefined)
    ? { code: dataTypes.udt, info: { fields } }
    : undefined
}

/** Splits at commas outside brackets. */
function partsOf(text: string): string[] {
  const parts: string[] = []
  let [from, depth] = [0, 0]
  for (let at = 0; at <= text.length; at++) {
    const character = text.charAt(at)
    if (character === '(') depth++
    if (character === ')') depth--
    if (at < text.length && (character !== ',' || depth > 0)) continue
    parts.push(text.slice(from, at).trim())
    from = at + 1
  }
  return parts
}

const CLASSES = new Map<string, number>([
  ['UTF8Type', dataTypes.varchar],
  ['AsciiType', dataTypes.ascii],
  ['UUIDType', dataTypes.uuid],
  ['TimeUUIDType', dataTypes.timeuuid],
  ['Int32Type', dataTypes.int],
  ['BytesType', dataTypes.blob],
  ['FloatType', dataTypes.float],
  ['DoubleType', dataTypes.double],
  ['BooleanType', dataTypes.boolean],
  ['InetAddressType', dataTypes.inet],
  ['SimpleDateType', dataTypes.date],
  ['TimeType', dataTypes.time],
  ['ShortType', dataTypes.smallint],
  ['ByteType', dataTypes.tinyint],
  ['TimestampType', dataTypes.timestamp],
  ['LongType', dataTypes.bigint],
  ['DecimalType', dataTypes.decimal],
  ['IntegerType', dataTypes.varint],
  ['CounterColumnType', dataTypes.counter],
  ['DurationType', dataTypes.duration],
])
