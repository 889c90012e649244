import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { Answer } from '../harness.ts'

/** An operation as the OpenAPI document describes it. */
export type Operation = {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly parameters: readonly Parameter[]
  readonly body: { readonly schema: Schema; readonly example?: unknown } | undefined
  /** A body that is no JSON. */
  readonly file: { readonly type: string; readonly example: unknown } | undefined
  readonly security: readonly Readonly<Record<string, unknown>>[]
  readonly responses: Readonly<Record<string, Response>>
}
type Response = { readonly description: string; readonly content?: Content; readonly $ref?: string }
type Schema = { readonly [keyword: string]: unknown }
type Media = {
  readonly schema: Schema
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
}
type Content = Readonly<Record<string, Media>>
type Parameter = {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: boolean
  readonly schema: Schema
  readonly style?: string
  readonly explode?: boolean
  readonly example?: unknown
}

/** Credentials by the name of their security scheme in the document. */
export type Credentials = Readonly<Record<string, string>>
export type CallArguments = {
  readonly parameters?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly as?: Credentials
}
export type Answered = Readonly<Pick<Answer, 'status' | 'body' | 'text'>>

export type DocumentClient = {
  readonly operations: ReadonlyMap<string, Operation>
  /** Builds the request from the document, and checks the response against it. */
  call(name: string, given?: CallArguments): Promise<Answered>
}

/** Creates a client from a service's address and its OpenAPI document alone. */
export async function createDocumentClient(url: string): Promise<DocumentClient> {
  // The checks below fail if the document has another shape.
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as Document
  assert.match(document.openapi, /^3\.1\./)
  const operations = new Map(operationsOf(document).map((operation) => [operation.name, operation]))
  const check = checker()
  return {
    operations,
    async call(name, given = {}) {
      const operation = operations.get(name)
      assert.ok(operation, `the document has no ${name}`)
      const response = await fetch(...requestOf(url, document, operation, given, check))
      const text = await response.text()
      const type = response.headers.get('content-type')?.split(';')[0] ?? ''
      const body = type === 'application/json' ? JSON.parse(text) : undefined
      isDescribed(operation, { status: response.status, type, body, text }, check)
      return { status: response.status, body, text }
    },
  }
}

type Document = {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, RawOperation>>>>
  readonly components: {
    readonly securitySchemes: Readonly<Record<string, SecurityScheme>>
    readonly schemas: Readonly<Record<string, Schema>>
    readonly responses: Readonly<Record<string, Response>>
  }
}
type RawOperation = Partial<Omit<Operation, 'body' | 'file'>> & {
  readonly tags?: readonly string[]
  readonly requestBody?: { readonly content: Content }
}
type SecurityScheme = {
  readonly type: string
  readonly in?: string
  readonly name?: string
  readonly scheme?: string
}

const operationsOf = ({ paths, components }: Document): Operation[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(() => !path.startsWith('/api/auth/'))
      .map(([method, { parameters = [], security = [], responses = {}, requestBody }]) => ({
        name: `${method.toUpperCase()} ${path}`,
        method: method.toUpperCase(),
        path,
        parameters,
        body: bodyShown(requestBody?.content['application/json'], components),
        file: fileShown(requestBody?.content ?? {}),
        security,
        responses: Object.fromEntries(
          Object.entries(responses).map(([status, { $ref, ...rest }]) => {
            const { content = {} } = $ref === undefined ? rest : shared($ref, components)
            return [status, { ...rest, content: withSchemas(content, components) }]
          }),
        ),
      })),
  )

type Components = Document['components']

function shared($ref: string, { responses }: Components): Response {
  const response = responses[$ref.split('/').at(-1) ?? '']
  assert.ok(response, `the document has no ${$ref}`)
  return response
}

const bodyShown = (media: Media | undefined, components: Components): Operation['body'] =>
  media && {
    schema: resolved(media.schema, components),
    example: media.example ?? Object.values(media.examples ?? {})[0]?.value,
  }

function fileShown(content: Content): Operation['file'] {
  const [type, media] = Object.entries(content).find(([type]) => type !== 'application/json') ?? []
  const example = media?.example ?? Object.values(media?.examples ?? {})[0]?.value
  return type === undefined ? undefined : { type, example }
}

const withSchemas = (content: Content, components: Components): Content =>
  Object.fromEntries(
    Object.entries(content).map(([type, { schema }]) => [type, { schema: resolved(schema, components) }]),
  )

/** A schema with `$ref` resolved, and with the document's components, so that a validator finds nested references. */
function resolved(schema: Schema, components: Components): Schema {
  const { $ref, ...rest } = schema
  const name = typeof $ref === 'string' ? ($ref.split('/').at(-1) ?? '') : undefined
  return { ...(name === undefined ? {} : components.schemas[name]), ...rest, components }
}

type Check = (schema: Schema, value: unknown, what: string) => void

/** Validates JSON Schema 2020-12 with a different validator than the service uses. */
function checker(): Check {
  // Formats and OpenAPI's own keywords are not validated.
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
  const compiled = new Map<Schema, ValidateFunction>()
  return (schema, value, what) => {
    const validate = compiled.get(schema) ?? ajv.compile(schema)
    compiled.set(schema, validate)
    assert.ok(
      validate(value),
      `${what}: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(value)?.slice(0, 1000)}`,
    )
  }
}

function requestOf(
  url: string,
  document: Document,
  operation: Operation,
  given: CallArguments,
  check: Check,
): [string, RequestInit] {
  const values = parametersOf(operation, given)
  const inPlace = (place: Parameter['in']) =>
    operation.parameters.flatMap(({ name, in: where }): [string, string][] => {
      const value = values[name]
      return where === place && value !== undefined ? [[name, value]] : []
    })
  const path = inPlace('path').reduce(
    (text, [name, value]) => text.replace(`{${name}}`, encodeURIComponent(value)),
    operation.path,
  )
  const named = new Set(operation.parameters.map(({ name }) => name))
  const others = Object.entries(values).filter(([name]) => !named.has(name))
  const query = new URLSearchParams([...inPlace('query'), ...others]).toString()
  const { file } = operation
  const body = bodyOf(operation, given, check)
  const headers = Object.fromEntries([
    ...inPlace('header'),
    ...credentialHeaders(document, operation, given.as ?? {}),
  ])
  return [
    `${url}${path}${query && `?${query}`}`,
    {
      method: operation.method,
      headers: {
        ...headers,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(file !== undefined && { 'content-type': file.type }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(file !== undefined && { body: String(file.example) }),
    },
  ]
}

/** Given parameters must be in the document. Missing required parameters are taken from its examples. */
function parametersOf({ name, parameters }: Operation, given: CallArguments): Record<string, string> {
  const known = new Map(parameters.map((parameter) => [parameter.name.toLowerCase(), parameter]))
  const values: Record<string, string> = {}
  for (const [key, value] of Object.entries(given.parameters ?? {})) {
    const parameter = known.get(key.toLowerCase())
    assert.ok(parameter ?? parameters.some(isOpen), `${name} does not document the parameter ${key}`)
    values[parameter?.name ?? key] = value
  }
  for (const { name: key, required, example, schema } of parameters) {
    if (!required || values[key] !== undefined) continue
    const shown = example ?? (schema.examples as readonly unknown[] | undefined)?.[0]
    assert.notEqual(shown, undefined, `${name} has no example of the parameter ${key}`)
    values[key] = String(shown)
  }
  return values
}

/** Whether a parameter is an object whose members are query parameters, which is the default style. */
const isOpen = ({ in: place, schema, style = 'form', explode = true }: Parameter): boolean =>
  place === 'query' &&
  schema.type === 'object' &&
  schema.additionalProperties !== undefined &&
  style === 'form' &&
  explode

function bodyOf({ name, body }: Operation, given: CallArguments, check: Check): unknown {
  if (body === undefined) {
    assert.equal(given.body, undefined, `${name} documents no body`)
    return undefined
  }
  const value = given.body ?? body.example ?? exampleOf(name, body.schema)
  check(body.schema, value, `the body of ${name}`)
  const { properties, additionalProperties } = body.schema
  if (additionalProperties === undefined || additionalProperties === false)
    for (const key of Object.keys(value as object))
      assert.ok(
        Object.hasOwn((properties ?? {}) as object, key),
        `${name} does not document the member ${key} of its body`,
      )
  return value
}

/** Builds an example from the examples of the members. Every required member must have one. */
function exampleOf(name: string, { properties = {}, required = [] }: Schema): unknown {
  const members = Object.entries(properties as Record<string, { examples?: readonly unknown[] }>)
  const shown = Object.fromEntries(
    members.flatMap(([key, { examples = [] }]) => (examples.length > 0 ? [[key, examples[0]]] : [])),
  )
  for (const key of required as readonly string[])
    assert.ok(Object.hasOwn(shown, key), `${name} has no example of ${key} in its body`)
  return shown
}

/** Headers of the first security requirement that the credentials satisfy. */
function credentialHeaders(
  { components }: Document,
  { security }: Operation,
  has: Credentials,
): [string, string][] {
  const way =
    security.find((schemes) => Object.keys(schemes).every((scheme) => has[scheme] !== undefined)) ?? {}
  return Object.keys(way).map((scheme) => {
    const { type, in: place, name = '', scheme: kind } = components.securitySchemes[scheme] ?? { type: '' }
    if (type === 'http') {
      assert.equal(kind, 'bearer')
      return ['authorization', `Bearer ${has[scheme]}`]
    }
    assert.deepEqual([type, place], ['apiKey', 'header'], scheme)
    return [name, has[scheme] ?? '']
  })
}

type Received = Answered & { readonly type: string }

/** Asserts that the response is documented. A failure may use the default response; a success may not, and must not have extra members. */
function isDescribed(
  { name, responses }: Operation,
  { status, type, body, text }: Received,
  check: Check,
): void {
  const what = `${status} of ${name}`
  const response =
    responses[status] ??
    responses[`${String(status).charAt(0)}XX`] ??
    (status >= 400 ? responses.default : undefined)
  assert.ok(response, `the document has no ${what}: ${text.slice(0, 500)}`)
  const content = response.content?.[type]
  assert.ok(content, `the document has no content type ${type} for ${what}`)
  assert.notEqual(response.description, 'Default Response', `the document has no description of ${what}`)
  if (body === undefined) check(content.schema, text, what)
  else check(closed(content.schema), body, what)
}

/** Closed schemas by their original, so that each is compiled once. */
const closedSchemas = new WeakMap<Schema, Schema>()
function closed(schema: Schema): Schema {
  const known = closedSchemas.get(schema) ?? { ...schema, unevaluatedProperties: false }
  closedSchemas.set(schema, known)
  return known
}
