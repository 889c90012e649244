import { type Static, type TSchema, Type } from 'typebox'

/** Response members. Dates are `Date`s in the program, and written as ISO 8601 with milliseconds, UTC. */
export const Timestamp = Type.Unsafe<Date>({ type: 'string', format: 'date-time' })
export const Id = Type.String({ format: 'uuid' })
/** An id in a path. */
export const PathId = Type.String({ format: 'uuid', examples: ['01a1fed6-8936-7ac3-bdf5-1fc3f49efcc6'] })

/** The schema, or null. A type list instead of a union, which the serialiser writes several times more slowly. */
export function Nullable<T extends TSchema>(schema: T) {
  const { type } = schema as { type?: string } // every JSON Schema that this is used on has one
  return Type.Unsafe<Static<T> | null>({ ...schema, type: [type, 'null'] })
}

/** An enum of these words. */
export const OneOf = <const T extends readonly string[]>(words: T, more: object = {}) =>
  Type.Unsafe<T[number]>({ type: 'string', enum: words, ...more })

/** The keyword of further spellings of the words of an enum. */
export const SPELLINGS = 'x-spellings'

/** Options of an enum whose words have further spellings: spelling → word. Validation replaces them; the document has the words only. */
export const spelled = (spellings: Readonly<Record<string, string>>): object => ({ [SPELLINGS]: spellings })

/** Options of a body of which no single member is required, but one. The document tells; the verb refuses an empty body. */
export const NOT_EMPTY = { minProperties: 1 }

/** The keyword of a schema for a body that the verb parses itself. */
export const PARSED = 'x-parsed'

/**
 * A body, or a member of one, that its verb parses, with more specific failures than a schema's. The document has the
 * whole schema; validation derives a wider one from it (`validate.ts`).
 */
export const Parsed = (schema: TSchema, more: object = {}) =>
  Type.Unsafe<Readonly<Record<string, unknown>>>({ ...schema, ...more, [PARSED]: true })

/** The keyword of a schema for a value whose parser refuses every unknown member, so that validation looks for no misspelt ones. */
export const EXACT = 'x-exact'

/** A response that is text and not JSON. */
export const PlainText = { content: { 'text/plain': { schema: Type.String() } } }

/** A response that is a page for a browser. */
export const HtmlPage = { content: { 'text/html': { schema: Type.String() } } }
