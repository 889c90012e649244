import { isDeepStrictEqual } from 'node:util'
import { EXACT, PARSED, SPELLINGS } from '../schemas.ts'

/** The keyword that makes a schema one of `components.schemas`, under this name. */
const NAME = 'x-component'
/** The keyword of a reference to a named schema, inside that schema. */
const REFERENCE = 'x-component-reference'

/** Options of a schema that becomes a component: `Type.Object({…}, named('User'))`. */
export const named = (name: string): Readonly<Record<string, string>> => ({ [NAME]: name })

export const isNamed = (schema: object): boolean => NAME in schema

export const isNamedAs = (schema: object, name: string): boolean =>
  isNamed(schema) && (schema as JsonSchema)[NAME] === name // any schema

/** Options of a reference to the schema of that name, inside itself. */
export const namedAs = (name: string): Readonly<Record<string, string>> => ({ [REFERENCE]: name })

/** The schema with another description at one place; a named schema stays a shared component. */
export function described<T extends object>(schema: T, description: string, more: object = {}): object {
  const { [NAME]: name } = schema as JsonSchema // any schema
  return { ...(typeof name === 'string' ? namedAs(name) : schema), description, ...more }
}

/** The document with every named schema once, in `components.schemas`, and references elsewhere. */
export function withComponents(document: JsonSchema): JsonSchema {
  const schemas: Record<string, JsonSchema> = {}
  const hoist = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(hoist)
    if (typeof node !== 'object' || node === null) return node
    const { [NAME]: name, [REFERENCE]: reference, ...rest } = without(node as JsonSchema, INTERNAL) // of a JSON document
    if (typeof reference === 'string') return { ...refTo(reference), ...rest }
    const members = Object.fromEntries(
      Object.entries(rest).map(([key, value]) => [
        key,
        hoist(key === 'properties' ? withoutDefaults(value) : value),
      ]),
    )
    if (typeof name !== 'string') return withConst(members)
    const { use, shape } = split(members, name)
    schemas[name] = sameAs(schemas[name], withConst(shape), name)
    return use
  }
  const { components, ...rest } = document
  const hoisted = hoist(rest) as JsonSchema // an object stays one
  return { ...hoisted, components: { ...(components as JsonSchema), schemas: sorted(schemas) } }
}

/** Keywords for validation only. */
const INTERNAL = [PARSED, EXACT, SPELLINGS]

const without = (members: JsonSchema, names: readonly string[]): JsonSchema =>
  Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name)))

/**
 * A named schema, and how to use it in its place. An object that may also be null is a union of the object and null, because generators
 * have no class for a list of types.
 */
function split(members: JsonSchema, name: string): { readonly use: JsonSchema; readonly shape: JsonSchema } {
  const { type, description, ...shape } = members
  if (!Array.isArray(type) || !type.includes('object')) return { use: refTo(name), shape: members }
  const others = type.filter((one) => one !== 'object').map((one) => ({ type: one }))
  const use = { anyOf: [refTo(name), ...others], ...(description !== undefined && { description }) }
  return { use, shape: { type: 'object', ...shape } }
}

/** Descriptions may differ, because those of parameters are next to the schema. */
function sameAs(known: JsonSchema | undefined, schema: JsonSchema, name: string): JsonSchema {
  if (known === undefined) return schema
  const { description, ...rest } = known
  const { description: other = description, ...others } = schema
  if (!isDeepStrictEqual(rest, others)) throw new Error(`Two schemas of the API reference are named ${name}`)
  return other === undefined ? rest : { ...rest, description: other }
}

/** A single word becomes a constant. Generators would create a class for an `enum`. */
function withConst(schema: JsonSchema): JsonSchema {
  const { enum: words, ...rest } = schema
  return schema.type === 'string' && Array.isArray(words) && words.length === 1
    ? { ...rest, const: words[0] }
    : schema
}

/**
 * Describes defaults in words. Generators read the keyword as a promise that the member is always present, and then require it
 * in requests.
 */
function withoutDefaults(properties: unknown): unknown {
  if (typeof properties !== 'object' || properties === null) return properties
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]: [string, JsonSchema]) => {
      if (schema?.default === undefined) return [name, schema]
      const { default: value, description, ...rest } = schema
      const words = `Default: ${String(value)}`
      return [name, { ...rest, description: description === undefined ? words : `${description}. ${words}` }]
    }),
  )
}

export type JsonSchema = Readonly<Record<string, unknown>>

const refTo = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

const sorted = (members: JsonSchema): JsonSchema =>
  Object.fromEntries(Object.entries(members).sort(([a], [b]) => (a < b ? -1 : 1)))
