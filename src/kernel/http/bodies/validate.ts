import type { FastifySchemaCompiler } from 'fastify'
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { edge, misspeltMember } from '../failures.ts'
import { PARSED, SPELLINGS } from '../schemas.ts'
import { isCleanText, readJson } from './body.ts'
import { misspeltIn } from './misspelt.ts'

/**
 * Validation of body, query, path and headers by TypeBox. Flags and numbers may be texts, and objects JSON texts
 * (auth.md 1); only this function converts them to the type of the schema.
 */
export const createValidatorCompiler = ({
  nullIsAbsent,
  refusesMisspelt,
}: BodyRules): FastifySchemaCompiler<TSchema> => {
  return ({ schema, httpPart, method }) =>
    compile(schema, httpPart, {
      nullIsAbsent: nullIsAbsent && httpPart === 'body' && method !== 'PATCH',
      refusesMisspelt: refusesMisspelt && (httpPart === 'body' || httpPart === 'querystring'),
    })
}

export type BodyRules = {
  /** Null in optional members of a body counts as absent, as clients in other languages send it; except in a PATCH, where it is a value. */
  readonly nullIsAbsent: boolean
  /** An unknown member of a body or query is refused when its name is close to a known one; it is ignored otherwise. */
  readonly refusesMisspelt: boolean
}

/** The first request compiles: a start would spend its time on hundreds of schemas. */
function compile(documented: TSchema, httpPart: string | undefined, rules: BodyRules) {
  let compiled: Compiled | undefined
  return (data: unknown) => {
    compiled ??= compiledOf(documented, rules)
    const { schema, validator, misspeltOf } = compiled
    const value = normalise(schema, data ?? {})
    if (rules.nullIsAbsent) dropAbsent(schema, value)
    const misspelt = misspeltOf(value)
    if (misspelt !== undefined) return { error: misspeltMember(misspelt, httpPart) }
    if (httpPart !== 'body' && !allTextsClean(value)) return { error: edge('invalid_text') }
    if (validator.Check(value)) return { value }
    const errors = validator.Errors(value)
    const [first] = errors
    const field = first === undefined ? '' : fieldOf(first)
    const form = first?.keyword === 'pattern' ? describedAt(schema, first.schemaPath) : undefined
    return {
      error: edge('validation_error', {
        message: first === undefined ? 'The request is not valid' : sentenceOf(field, first, errors, form),
        ...(form !== undefined && { hint: form }),
        details: { field, in: httpPart ?? 'body' },
      }),
    }
  }
}

type Compiled = ReturnType<typeof compiledOf>

function compiledOf(documented: TSchema, { refusesMisspelt }: BodyRules) {
  const schema = forValidation(documented)
  const misspeltOf = refusesMisspelt ? misspeltIn(documented) : () => undefined
  return { schema, validator: Compile(schema), misspeltOf }
}

/** Repeated parameters are a list. */
const allTextsClean = (value: unknown): boolean =>
  typeof value === 'string'
    ? isCleanText(value)
    : typeof value !== 'object' || value === null || Object.values(value).every(allTextsClean)

/** The keywords of JSON Schema that are used here. */
type Shape = {
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly properties?: Readonly<Record<string, Shape>>
  readonly items?: Shape
  readonly required?: readonly string[]
  readonly enum?: readonly unknown[]
  readonly minimum?: number
  readonly minProperties?: number
  readonly [SPELLINGS]?: Readonly<Record<string, string>>
  readonly [PARSED]?: boolean
}

/**
 * The schema for validation: the documented one, but for what the verb parses (`Parsed`) only the types of plain members. The verb
 * checks the rest, with more specific failures, and accepts further spellings.
 */
function forValidation<T extends Shape>(schema: T): T {
  // Both results have the same keywords, or fewer.
  if (schema[PARSED] === true) return { ...typesOnly(schema), [PARSED]: true } as T
  const { properties, items, minProperties: _, ...rest } = schema
  if (properties === undefined && items === undefined) return schema
  return {
    ...rest,
    ...(properties !== undefined && { properties: eachOf(properties, forValidation) }),
    ...(items !== undefined && { items: forValidation(items) }),
  } as T
}

function typesOnly({ type, enum: words, minimum, properties }: Shape): Shape {
  if (type === undefined) return {}
  return {
    type,
    ...(words !== undefined && { enum: words }),
    ...(minimum !== undefined && { minimum }),
    ...(properties !== undefined && { properties: eachOf(properties, plainMember) }),
  }
}

/** Structured members, and those of several types, have further spellings that are not documented. */
const plainMember = (member: Shape): Shape =>
  typeof member.type === 'string' && member.type !== 'object' && member.type !== 'array'
    ? typesOnly(member)
    : {}

const eachOf = (properties: Readonly<Record<string, Shape>>, change: (schema: Shape) => Shape) =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, change(schema)]))

function normalise(shape: Shape, value: unknown): unknown {
  const types = typeof shape.type === 'string' ? [shape.type] : (shape.type ?? [])
  const typed = JSON.isRawJSON(value)
    ? fromRaw(types, value)
    : typeof value === 'string' && !types.includes('string')
      ? fromText(types, value)
      : value
  if (typeof typed === 'string') return wordOf(shape, typed)
  if (typeof typed !== 'object' || typed === null) return typed
  if (Array.isArray(typed))
    return shape.items === undefined ? typed : typed.map((item) => normalise(shape.items ?? {}, item))
  const { properties } = shape
  if (properties === undefined) return typed
  // A parsed body or query: a plain object without other references.
  const record = typed as Record<string, unknown>
  for (const name of Object.keys(record)) {
    const inner = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (inner !== undefined) record[name] = normalise(inner, record[name])
  }
  return record
}

/**
 * The word of an enum that has further spellings, and an id as the database writes it: in other cases it would have a limit of its own, and
 * a place of its own in the audit trail.
 */
function wordOf({ [SPELLINGS]: words = {}, format }: Shape, typed: string): string | undefined {
  if (format === 'uuid') return typed.toLowerCase()
  return Object.hasOwn(words, typed) ? words[typed] : typed
}

/**
 * Clients in other languages send null for absent members: in an optional member whose schema has no null, null counts as absent,
 * and the member is deleted in place. In a body that the verb parses, nulls are values only in inner members (`set`,
 * `value`), which the schema does not list.
 */
function dropAbsent(shape: Shape, value: unknown): void {
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return
  const { properties, items } = shape
  if (Array.isArray(value)) {
    if (items !== undefined) for (const item of value) dropAbsent(items, item)
    return
  }
  const record = value as Record<string, unknown> // no array, no null
  for (const name of Object.keys(record)) {
    const inner = properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined
    if (record[name] !== null) {
      if (inner !== undefined) dropAbsent(inner, record[name])
    } else if (isAbsence(shape, name)) delete record[name]
  }
}

function isAbsence({ [PARSED]: isParsed, properties = {}, required = [] }: Shape, name: string): boolean {
  if (isParsed === true) return true
  const member = Object.hasOwn(properties, name) ? properties[name] : undefined
  return member?.type !== undefined && !required.includes(name) && ![member.type].flat().includes('null')
}

/** The number of a raw JSON number (`10.0`), where the schema has a number. */
const fromRaw = (types: readonly string[], value: { readonly rawJSON: string }): unknown =>
  types.includes('integer') || types.includes('number') ? Number(value.rawJSON) : value

function fromText(types: readonly string[], text: string): unknown {
  if (types.includes('boolean') && (text === 'true' || text === 'false')) return text === 'true'
  if ((types.includes('integer') || types.includes('number')) && /^-?\d{1,15}(\.\d+)?$/.test(text))
    return Number(text)
  if (
    (types.includes('object') && text.startsWith('{')) ||
    (types.includes('array') && text.startsWith('['))
  ) {
    // Invalid JSON stays a text, and fails as one.
    const { json = text } = readJson(text)
    return json
  }
  return text
}

type SchemaError = {
  readonly keyword: string
  readonly schemaPath: string
  readonly instancePath: string
  readonly message: string
  readonly params: object
}

function fieldOf({ instancePath, params }: SchemaError): string {
  const missing =
    'requiredProperties' in params && Array.isArray(params.requiredProperties)
      ? params.requiredProperties[0]
      : ''
  return [...instancePath.split('/').slice(1), missing].filter((part) => part !== '').join('.')
}

function sentenceOf(
  field: string,
  first: SchemaError,
  all: readonly SchemaError[],
  form: string | undefined,
): string {
  if (first.keyword === 'required') return `${field} is required`
  if (form !== undefined) return `${field} has an invalid form`
  const allowed = allowedBy(first, all)
  const expected =
    allowed === undefined
      ? first.message
      : `must be ${allowed.length > 1 ? 'one of ' : ''}${allowed.join(', ')}`
  return `${field === '' ? 'The body' : field} ${expected}`
}

/** The description at a place like `#/properties/bucket`: it says in words which texts a pattern takes. */
function describedAt(schema: object, path: string): string | undefined {
  let place: unknown = schema
  for (const part of path.split('/').slice(1)) {
    if (typeof place !== 'object' || place === null || !Object.hasOwn(place, part)) return undefined
    place = Object.getOwnPropertyDescriptor(place, part)?.value
  }
  if (typeof place !== 'object' || place === null || !('description' in place)) return undefined
  return typeof place.description === 'string' ? place.description : undefined
}

/** The values of an enum, or of a union of constants, each of which has an error of its own. */
function allowedBy({ keyword, instancePath, params }: SchemaError, all: readonly SchemaError[]) {
  if (keyword === 'enum' && 'allowedValues' in params && Array.isArray(params.allowedValues))
    return params.allowedValues
  if (keyword !== 'const') return undefined
  return all.flatMap((error) =>
    error.keyword === 'const' && error.instancePath === instancePath && 'allowedValue' in error.params
      ? [error.params.allowedValue]
      : [],
  )
}
