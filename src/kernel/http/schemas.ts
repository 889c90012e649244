import { type Static, type TSchema, Type } from 'typebox'

/** Response members. Dates are handed over as `Date` and written as ISO 8601 with milliseconds, UTC. */
export const Timestamp = Type.Unsafe<Date>({ type: 'string', format: 'date-time' })
export const Id = Type.String({ format: 'uuid' })

/** The schema, or null. As a type list rather than a union: the serialiser is several times faster on it. */
export function Nullable<T extends TSchema>(schema: T) {
  const { type } = schema as { type?: string } // every JSON Schema that this is used on has one
  return Type.Unsafe<Static<T> | null>({ ...schema, type: [type, 'null'] })
}

/** A response that is text and not JSON. */
export const PlainText = { content: { 'text/plain': { schema: Type.String() } } }
