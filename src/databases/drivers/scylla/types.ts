import { types } from 'cassandra-driver'

/** A type as the server tells it with a prepared statement and with its rows. `info` depends on the code. */
export type CqlType = { readonly code: number; readonly info?: unknown }

export const { dataTypes } = types

/** Classes of the server's, for types that its protocol has no number for. */
const DURATION = 'org.apache.cassandra.db.marshal.DurationType'
const VECTOR =
  /^org\.apache\.cassandra\.db\.marshal\.VectorType\(org\.apache\.cassandra\.db\.marshal\.FloatType\s*,\s*(\d+)\)$/

/** Of a list or a set. */
export const elementOf = (type: CqlType): CqlType => type.info as CqlType // as the protocol has it

export const entryOf = (type: CqlType): readonly [key: CqlType, value: CqlType] =>
  type.info as readonly [CqlType, CqlType] // as the protocol has it

/** Of a tuple. */
export const membersOf = (type: CqlType): readonly CqlType[] => type.info as readonly CqlType[] // as the protocol has it

export type Field = { readonly name: string; readonly type: CqlType }

/** Of a user-defined type. */
export const fieldsOf = (type: CqlType): readonly Field[] =>
  (type.info as { readonly fields: readonly Field[] }).fields // as the protocol has it

export const isDuration = ({ code, info }: CqlType): boolean =>
  code === dataTypes.duration || (code === dataTypes.custom && info === DURATION)

/** Of a vector of floats. */
export function dimensionsOf({ code, info }: CqlType): number | undefined {
  const found = code === dataTypes.custom && typeof info === 'string' ? VECTOR.exec(info) : undefined
  return found ? Number(found[1]) : undefined
}
