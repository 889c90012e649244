import type { RouteOptions } from 'fastify'
import type { FailureTable } from '../../errors.ts'
import { type Access, open } from '../access.ts'
import { HEADER, shownHeader } from '../header-names.ts'
import { isNamed, named } from './components.ts'
import { failureResponses, RESPONSE_DESCRIPTION } from './documented-failures.ts'

/** A part of the API reference: the routes of one feature. */
export type Feature = { readonly name: string; readonly description: string }

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Further codes of failures, besides those of its access, its body and its surface. */
    failures?: readonly string[]
    /** The surface's table of codes. */
    codes?: FailureTable
    /** The tag of the route in the API reference. */
    feature?: Feature
  }
}

/** The part of the document that every route has: name, feature, access and failures. */
export function documentedOperation(route: RouteOptions, name: Name): object {
  const { schema, config } = route
  const { access = open, feature, surface = 'gateway' } = config ?? {}
  return {
    hide: schema === undefined,
    operationId: name.id,
    tags: [feature?.name ?? surface],
    description: [
      ...(name.aliasOf === undefined ? [] : [`Alias of \`${name.aliasOf}\`, not deprecated.`]),
      ...(schema?.description === undefined ? [] : [schema.description]),
      `Access: ${access.name}.`,
    ].join(' '),
    ...(name.aliasOf !== undefined && { 'x-alias-of': name.aliasOf }),
    security: access.security,
    ...(schema?.body !== undefined && { body: namedFor(name, 'Body', schema.body as SchemaObject) }),
    response: { ...successes(route, name), ...failureResponses(route) },
    ...(access.needsClient === true && { headers: withClient(access, schema?.headers as SchemaObject) }),
    ...openQuery(schema?.querystring as SchemaObject | undefined),
  }
}

/** JSON Schema objects, as TypeBox builds them. */
type SchemaObject = Readonly<Record<string, object>>

function successes({ method, schema, config }: RouteOptions, name: Name): object {
  const responses = (schema?.response ?? {}) as SchemaObject
  const isLink = method === 'GET' && (config?.redirects ?? []).length > 0
  return Object.fromEntries(
    Object.entries({ ...responses, ...(isLink && responses[302] === undefined && { 302: REDIRECT }) }).map(
      ([status, response]) => [
        status,
        {
          [RESPONSE_DESCRIPTION]: status.startsWith('2') ? 'Success' : 'Failure',
          ...(status.startsWith('2') ? namedFor(name, 'Result', response) : response),
        },
      ],
    ),
  )
}

/** Names an object after its operation, so that generated clients have a class with a meaningful name. */
function namedFor({ id, aliasOf = id }: Name, what: 'Body' | 'Result', schema: object): object {
  const isObject = ('type' in schema && schema.type === 'object') || 'allOf' in schema
  const name = `${aliasOf.charAt(0).toUpperCase()}${aliasOf.slice(1)}${what}`
  return isObject && !isNamed(schema) ? { ...schema, ...named(name) } : schema
}

/** The answer to a link in a mail that names a redirect target. */
const REDIRECT = {
  type: 'null',
  description: 'To the redirect target of the request, with `?error=CODE` after a failure',
  headers: { location: { type: 'string', format: 'uri-reference' } },
}

const CLIENT = shownHeader(HEADER.client)

const withClient = ({ takesProject = false }: Access, headers: SchemaObject = {}): object => ({
  type: 'object',
  required: [CLIENT],
  properties: {
    [CLIENT]: { type: 'string', description: 'The database client', examples: ['default'] },
    ...(takesProject && PROJECT),
    ...headers.properties,
  },
})

const PROJECT = {
  [HEADER.projectUrl]: {
    type: 'string',
    format: 'uri',
    description: 'The project, for client custom_supabase',
  },
  [HEADER.projectKey]: { type: 'string', description: 'Its key, for client custom_supabase' },
}

/** Queries with names that the caller chooses: in OpenAPI, an object whose members are parameters. */
function openQuery(query: SchemaObject = {}): object {
  if (!query.additionalProperties) return {}
  const { description, properties } = query
  const others = { type: 'object', additionalProperties: TEXT, description }
  return { querystring: { ...query, properties: { ...properties, arguments: others } } }
}

const TEXT = { type: 'string' }

type Name = { readonly id: string; readonly aliasOf?: string }

/**
 * Gives each route its `operationId`: that of its schema, else one from its path. A second route with the same one is an alias of
 * the first, and is named after its path.
 */
export function createOperationNames(): (route: RouteOptions) => Name {
  const owners = new Map<string, string>()
  return (route) => {
    const place = `${route.method} ${route.url}`
    const isFree = (id: string) => (owners.get(id) ?? place) === place
    const path = pathOf(route)
    const declared = route.schema?.operationId
    const id = [declared, camelCased(path), camelCased([String(route.method), ...path])].find(
      (name) => name !== undefined && name !== '' && isFree(name),
    )
    if (id === undefined) throw new Error(`${place} has no operationId of its own`)
    owners.set(id, place)
    return declared === undefined || declared === id ? { id } : { id, aliasOf: declared }
  }
}

/** The words of a path, without the surface's prefix and parameters. */
function pathOf({ url, prefix = '' }: RouteOptions & { readonly prefix?: string }): readonly string[] {
  const path = url.startsWith(prefix) ? url.slice(prefix.length) : url
  return path
    .split('/')
    .filter((part) => !part.startsWith(':'))
    .flatMap((part) => part.split(/[^A-Za-z0-9]+/))
    .filter((word) => word !== '')
}

const camelCased = (words: readonly string[]): string =>
  words
    .map((word) => word.toLowerCase())
    .map((word, index) => (index === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1)))
    .join('')
