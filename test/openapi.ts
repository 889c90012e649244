import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { RouteOptions } from 'fastify'
import { failureResponses } from '#kernel/http/document/documented-failures.ts'
import type { RouteBook } from '#kernel/http/routes.ts'

/** The parts of the OpenAPI document that tests use. */
export type OpenapiDocument = {
  readonly openapi: string
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>
  readonly webhooks: Readonly<Record<string, { readonly post: DocumentedOperation }>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly responses: Readonly<Record<string, Response>>
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
  readonly requestBody?: { readonly content: Content; readonly required: boolean }
  readonly responses: Readonly<Record<string, Response & { readonly $ref?: string }>>
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

/** All operations of the document, with method and path. */
export const operationsOf = (document: OpenapiDocument) =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )

/** Resolves a `$ref`. */
export function resolved({ components }: OpenapiDocument, schema: Schema): Schema {
  const { $ref, ...rest } = schema
  if (typeof $ref !== 'string') return schema
  const found = components.schemas[$ref.replace('#/components/schemas/', '')]
  assert.ok(found, `the document has no ${$ref}`)
  return { ...found, ...rest }
}

/** The content of a response, which may be a shared one. */
export const contentOf = (
  { components }: OpenapiDocument,
  { $ref = '', content }: DocumentedOperation['responses'][string],
): Content | undefined =>
  content ?? components.responses[$ref.replace('#/components/responses/', '')]?.content

/** Returns an assertion that a response is documented for its operation: status, content type and body schema. */
export function documentedAnswers(document: OpenapiDocument): (place: Place, answer: Answer) => void {
  // Formats are only descriptions here. OpenAPI has keywords that JSON Schema does not know.
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
    assert.ok(response, `the document has no ${what}: ${text.slice(0, 500)}`)
    const content = contentOf(document, response)
    if (content === undefined) return assert.equal(text, '', `${what} has no body in the document`)
    const media = content[type]
    assert.ok(media, `the document has no content type ${type} for ${what}`)
    const validate = compile(media.schema)
    const body = type === 'application/json' ? JSON.parse(text) : text
    assert.ok(validate(body), `${what}: ${ajv.errorsText(validate.errors)} in ${text.slice(0, 1_000)}`)
  }
}

/** Returns an assertion that the payload of a webhook is as documented for its event. */
export function documentedPayloads(document: OpenapiDocument): (payload: { readonly type: string }) => void {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
  return (payload) => {
    const schema = document.webhooks[payload.type]?.post.requestBody?.content['application/json']?.schema
    assert.ok(schema, `the document has no webhook ${payload.type}`)
    const isValid = ajv.validate({ ...schema, components: document.components }, payload)
    assert.ok(isValid, `${payload.type}: ${ajv.errorsText()} in ${JSON.stringify(payload).slice(0, 1_000)}`)
  }
}

/**
 * Returns an assertion that a failure's status is documented for its route. It ignores requests that match no route of the document, and 405,
 * which is sent before routing. It asks the routes, since a document takes 0.1 s to make.
 */
export function documentedStatuses({ routeOf }: RouteBook): (place: Place, status: number) => void {
  const known = new WeakMap<RouteOptions, ReadonlySet<string>>()
  return ({ method, path }, status) => {
    if (status < 400 || status === 405) return
    const route = routeOf({ method, url: path })
    if (route?.schema === undefined) return
    const statuses = known.get(route) ?? statusesOf(route)
    known.set(route, statuses)
    assert.ok(
      statuses.has(String(status)) || statuses.has(`${String(status).charAt(0)}XX`),
      `${method} ${route.url} returned ${status}, which its route does not declare (config.failures)`,
    )
  }
}

const statusesOf = (route: RouteOptions): ReadonlySet<string> =>
  new Set(Object.keys({ ...(route.schema?.response ?? {}), ...failureResponses(route) }))

/** Example bodies of an operation. If the document has none, one is built from the examples of the members. */
export function shownBodies(document: OpenapiDocument, { requestBody }: DocumentedOperation): unknown[] {
  const media = requestBody?.content['application/json']
  if (media === undefined) return []
  if (media.example !== undefined) return [media.example]
  if (media.examples !== undefined) return Object.values(media.examples).map(({ value }) => value)
  const { properties = {} } = resolved(document, media.schema)
  // TypeBox schemas: each property may have examples.
  const members = Object.entries(properties as Record<string, { examples?: readonly unknown[] }>)
  return [
    Object.fromEntries(
      members.flatMap(([name, { examples = [] }]) => examples.slice(0, 1).map((shown) => [name, shown])),
    ),
  ]
}
