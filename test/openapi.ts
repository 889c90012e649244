import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

/** As much of the OpenAPI document as tests look at. */
export type OpenapiDocument = {
  readonly openapi: string
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly securitySchemes: Readonly<Record<string, object>>
  }
}
export type DocumentedOperation = {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly tags: readonly string[]
  readonly 'x-alias-of'?: string
  readonly security: readonly Readonly<Record<string, unknown>>[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, Response>>
}
export type Parameter = {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: boolean
  readonly schema: Schema
  readonly example?: unknown
}
type Response = { readonly description: string; readonly content?: Content }
type Content = Readonly<Record<string, Media>>
export type Media = {
  readonly schema: Schema
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
}
export type Schema = { readonly [keyword: string]: unknown }

export type Place = { readonly method: string; readonly path: string }
export type Answer = { readonly status: number; readonly type: string; readonly text: string }

/** Every operation of the document, with its place. */
export const operationsOf = (document: OpenapiDocument) =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )

/** What stands behind a `$ref`. */
export function resolved({ components }: OpenapiDocument, schema: Schema): Schema {
  const { $ref, ...rest } = schema
  if (typeof $ref !== 'string') return schema
  const found = components.schemas[$ref.replace('#/components/schemas/', '')]
  assert.ok(found, `the document has no ${$ref}`)
  return { ...found, ...rest }
}

/** Fails unless the document says that this operation may answer so: status, content type and body. */
export function documentedAnswers(document: OpenapiDocument): (place: Place, answer: Answer) => void {
  // Formats are descriptions here; keywords of OpenAPI are unknown to JSON Schema.
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
  const compiled = new Map<Schema, ValidateFunction>()
  const compile = (schema: Schema): ValidateFunction => {
    const validate = compiled.get(schema) ?? ajv.compile({ ...schema, components: document.components })
    compiled.set(schema, validate)
    return validate
  }
  return ({ method, path }, { status, type, text }) => {
    const what = `${status} of ${method} ${path}`
    const { responses = {} } = document.paths[path]?.[method.toLowerCase()] ?? {}
    const response = responses[status] ?? responses[`${String(status).charAt(0)}XX`]
    assert.ok(response, `the document does not know ${what}: ${text.slice(0, 500)}`)
    if (response.content === undefined) return assert.equal(text, '', `${what} has no body in the document`)
    const media = response.content[type]
    assert.ok(media, `the document does not know ${type} of ${what}`)
    const validate = compile(media.schema)
    const body = type === 'application/json' ? JSON.parse(text) : text
    assert.ok(validate(body), `${what}: ${ajv.errorsText(validate.errors)} in ${text.slice(0, 1_000)}`)
  }
}

/**
 * Fails when a failure has a status that the document does not know for that operation. What no operation is asked for, or what never
 * reaches one, is passed over. The document is read when the first failure comes.
 */
export function documentedStatuses(read: () => OpenapiDocument): (place: Place, status: number) => void {
  let patterns: { readonly pattern: RegExp; readonly place: Place; readonly statuses: readonly string[] }[]
  return ({ method, path }, status) => {
    if (status < 400 || status === 405 || status === 431) return
    patterns ??= operationsOf(read()).map(({ operation, ...place }) => ({
      place,
      pattern: new RegExp(`^${place.path.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
      statuses: Object.keys(operation.responses),
    }))
    const asked = path.split('?', 1)[0] ?? ''
    // An address that stands in the document as it is comes before one with parameters.
    const found = patterns
      .filter(
        ({ pattern, place }) => place.method === (method === 'HEAD' ? 'GET' : method) && pattern.test(asked),
      )
      .sort((a, b) => Number(b.place.path === asked) - Number(a.place.path === asked))[0]
    if (found === undefined) return
    const { statuses, place } = found
    assert.ok(
      statuses.includes(String(status)) || statuses.includes(`${String(status).charAt(0)}XX`),
      `${place.method} ${place.path} answered ${status}, which its route does not declare (config.failures)`,
    )
  }
}

/** Bodies that the document shows for an operation; put together from examples of members where it shows none. */
export function shownBodies(document: OpenapiDocument, { requestBody }: DocumentedOperation): unknown[] {
  const media = requestBody?.content['application/json']
  if (media === undefined) return []
  if (media.example !== undefined) return [media.example]
  if (media.examples !== undefined) return Object.values(media.examples).map(({ value }) => value)
  const { properties = {} } = resolved(document, media.schema)
  // Members of a schema.
  const members = Object.entries(properties as Record<string, { examples?: readonly unknown[] }>)
  return [
    Object.fromEntries(
      members.flatMap(([name, { examples = [] }]) => examples.slice(0, 1).map((shown) => [name, shown])),
    ),
  ]
}
