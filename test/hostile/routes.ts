import { ADMIN_KEY, type TestService } from '#test/harness.ts'
import { type OpenapiDocument, resolved, shownBodies } from '#test/openapi.ts'

/** The parts of an OpenAPI schema that the attacks use. */
export type Shape = {
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, Shape>>
  readonly required?: readonly string[]
  readonly items?: Shape
  readonly anyOf?: readonly Shape[]
  readonly oneOf?: readonly Shape[]
  readonly allOf?: readonly Shape[]
  readonly enum?: readonly unknown[]
  readonly format?: string
  readonly minimum?: number
  readonly maxLength?: number
  readonly examples?: readonly unknown[]
}

/** A route of the running service with its documented parameters and body. */
export type Target = {
  readonly method: string
  /** Path with `{name}` for parameters. */
  readonly path: string
  readonly surface: string
  readonly credential: 'none' | 'session' | 'key' | 'admin'
  readonly query: Readonly<Record<string, Shape>>
  readonly headers: readonly string[]
  readonly body: Shape | undefined
  /** A file of the API reference page, without parameters. */
  readonly isFile: boolean
}

/** All registered routes, described by the service's own OpenAPI document. */
export function targetsOf({ service }: TestService): readonly Target[] {
  const document = documentOf(service)
  const { paths } = document
  return service.book.entries().map(({ method, path, surface }) => {
    const operation = paths[path]?.[method.toLowerCase()]
    const { security = [], parameters = [], requestBody } = operation ?? {}
    // Routes that accept a form accept the same fields as JSON.
    const [media] = Object.values(requestBody?.content ?? {})
    const query = parameters.filter((parameter) => parameter.in === 'query')
    return {
      method,
      path,
      surface,
      credential: credentialOf(security),
      headers: parameters.filter((parameter) => parameter.in === 'header').map(({ name }) => name),
      query: Object.fromEntries(
        query.map(({ name, schema, example }) => [
          name,
          { ...schema, ...(example !== undefined && { examples: [example] }) },
        ]),
      ),
      body: media &&
        operation && { ...resolved(document, media.schema), examples: shownBodies(document, operation) },
      isFile: paths[path] === undefined,
    }
  })
}

/** The OpenAPI document; Fastify's type of it is wider. */
export const documentOf = (service: TestService['service']): OpenapiDocument =>
  service.app.swagger() as unknown as OpenapiDocument

function credentialOf(security: readonly Readonly<Record<string, unknown>>[]): Target['credential'] {
  const names = security.flatMap((requirement) => Object.keys(requirement))
  if (names.includes('adminKey')) return 'admin'
  if (names.includes('apiKey')) return 'key'
  return names.includes('sessionToken') ? 'session' : 'none'
}

/** A valid value for the schema. */
export function sampleOf(shape: Shape): unknown {
  const [type] = [shape.type].flat()
  if (shape.examples?.[0] !== undefined) return shape.examples[0]
  if (shape.enum !== undefined) return shape.enum[0]
  if (type === 'object') return sampleObject(shape)
  if (type === 'array') return []
  if (type === 'boolean') return true
  if (type === 'integer' || type === 'number') return shape.minimum ?? 1
  if (shape.format === 'date-time') return '2100-01-01T00:00:00Z'
  return 'sample'
}

/** Required members only. The attacks add the others. */
const sampleObject = ({ properties = {}, required = [] }: Shape): Record<string, unknown> =>
  Object.fromEntries(required.map((name) => [name, sampleOf(properties[name] ?? {})]))

/** The headers that get a request past authentication, with a user's session and a key of client `default`. */
export function credentialsFor(
  { credential }: Target,
  held: { readonly token: string; readonly apiKey: string },
): readonly (readonly [name: string, value: string])[] {
  if (credential === 'none') return []
  if (credential === 'session') return [['authorization', `Bearer ${held.token}`]]
  if (credential === 'admin') return [['apikey', ADMIN_KEY]]
  return [
    ['apikey', held.apiKey],
    ['x-service-client', 'default'],
  ]
}
