import { isDeepStrictEqual } from 'node:util'
import { PARSED } from './schemas.ts'

/** The keyword that makes a schema one of `components.schemas`, under this name. */
const NAME = 'x-component'
/** The keyword of a schema that stands for a named one, where that contains itself. */
const REFERENCE = 'x-component-reference'

/** Options of a schema that the document shares: `Type.Object({…}, named('User'))`. */
export const named = (name: string): Readonly<Record<string, string>> => ({ [NAME]: name })

export const isNamed = (schema: object): boolean => NAME in schema

/** Stands for the schema of that name inside itself. */
export const namedAs = (name: string): Readonly<Record<string, string>> => ({ [REFERENCE]: name })

/** The schema with another description where it is used: a named one stays shared. */
export function described<T extends object>(schema: T, description: string, more: object = {}): object {
  const { [NAME]: name } = schema as Described // any schema
  return { ...(typeof name === 'string' ? namedAs(name) : schema), description, ...more }
}

/** The document with every named schema written once, under `components.schemas`, and referred to elsewhere. */
export function withComponents(document: Described): Described {
  const schemas: Record<string, Described> = {}
  const hoist = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(hoist)
    if (typeof node !== 'object' || node === null) return node
    const { [NAME]: name, [REFERENCE]: reference, [PARSED]: _, ...rest } = node as Described // of a JSON document
    if (typeof reference === 'string') return { ...refTo(reference), ...rest }
    const members = Object.fromEntries(
      Object.entries(rest).map(([key, value]) => [
        key,
        hoist(key === 'properties' ? withoutDefaults(value) : value),
      ]),
    )
    if (typeof name !== 'string') return withConst(members)
    schemas[name] = sameAs(schemas[name], withConst(members), name)
    return refTo(name)
  }
  const { components, ...rest } = document
  const hoisted = hoist(rest) as Described // an object stays one
  return { ...hoisted, components: { ...(components as Described), schemas: sorted(schemas) } }
}

/** A parameter has its description beside the schema, so that is no difference. */
function sameAs(known: Described | undefined, schema: Described, name: string): Described {
  if (known === undefined) return schema
  const { description, ...rest } = known
  const { description: other = description, ...others } = schema
  if (!isDeepStrictEqual(rest, others)) throw new Error(`Two schemas of the API reference are named ${name}`)
  return other === undefined ? rest : { ...rest, description: other }
}

/** One word is a constant, which generators write as one; of an `enum` they make a class of its own. */
function withConst(schema: Described): Described {
  const { enum: words, ...rest } = schema
  return schema.type === 'string' && Array.isArray(words) && words.length === 1
    ? { ...rest, const: words[0] }
    : schema
}

/**
 * Members with their default in words. Generators take the keyword for a promise that the member is always there, and then ask for it
 * in requests.
 */
function withoutDefaults(properties: unknown): unknown {
  if (typeof properties !== 'object' || properties === null) return properties
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]: [string, Described]) => {
      if (schema?.default === undefined) return [name, schema]
      const { default: value, description, ...rest } = schema
      const words = `Default: ${String(value)}`
      return [name, { ...rest, description: description === undefined ? words : `${description}. ${words}` }]
    }),
  )
}

export type Described = Readonly<Record<string, unknown>>

const refTo = (name: string) => ({ $ref: `#/components/schemas/${name}` })

const sorted = (members: Described): Described =>
  Object.fromEntries(Object.entries(members).sort(([a], [b]) => (a < b ? -1 : 1)))
