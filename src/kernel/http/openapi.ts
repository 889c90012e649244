import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import swagger from '@fastify/swagger'
import type { FastifySchema, RouteOptions } from 'fastify'
import { Type } from 'typebox'
import type { Kernel } from '../kernel.ts'
import { VERSION } from '../version.ts'
import { open } from './access.ts'
import type { App } from './surface.ts'
import { HEADER } from './words.ts'

/** Collects the routes that are added after it into one OpenAPI 3.1 document for both surfaces. */
export function describeRoutes(app: App, { config }: Kernel): void {
  app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Gatehouse',
        version: VERSION,
        description: 'Authentication and data gateway.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/' }],
      tags: [
        { name: 'auth', description: 'Authentication surface' },
        { name: 'gateway', description: 'Data gateway surface' },
      ],
      components: {
        securitySchemes: {
          sessionToken: { type: 'http', scheme: 'bearer', description: 'A session token' },
          sessionHeader: {
            type: 'apiKey',
            in: 'header',
            name: HEADER.sessionToken,
            description: `A session token, where the client has row-level security; also ${HEADER.sessionBearer}`,
          },
          sessionCookie: { type: 'apiKey', in: 'cookie', name: config.session.cookie_name },
          apiKey: {
            type: 'apiKey',
            in: 'header',
            name: 'apikey',
            description: `Also ${HEADER.serviceKey}, x-api-key, ?api_key=`,
          },
          apiKeyBearer: { type: 'http', scheme: 'bearer', description: 'An API key, svc_…' },
          adminKey: { type: 'apiKey', in: 'header', name: HEADER.adminKey },
        },
      },
    },
    transform: ({ schema, url, route }) => ({ url, schema: { ...schema, ...documented(schema, route) } }),
  })
}

/** What the document says of every route: who may call it, on which surface, and what a failure looks like. */
function documented(schema: FastifySchema | undefined, { config }: RouteOptions): object {
  const { access = open, surface = 'gateway' } = config ?? {}
  return {
    hide: schema === undefined,
    tags: [surface],
    description: `Access: ${access.name}.`,
    security: access.security,
    response: {
      ...described(schema?.response as Described | undefined),
      default: FAILURE[surface === 'auth' ? 'auth' : 'gateway'],
    },
    ...(access.needsClient === true && { headers: withClient(schema?.headers as Described | undefined) }),
    ...openQuery(schema?.querystring as Described | undefined),
  }
}

/** JSON Schema objects, as TypeBox builds them. */
type Described = Readonly<Record<string, object>>

const described = (responses: Described = {}): object =>
  Object.fromEntries(
    Object.entries(responses).map(([status, response]) => [
      status,
      { description: status.startsWith('2') ? 'Success' : 'Failure', ...response },
    ]),
  )

const withClient = (headers: Described = {}): object => ({
  type: 'object',
  required: ['X-Service-Client'],
  properties: {
    'X-Service-Client': { type: 'string', description: 'The database client', examples: ['default'] },
    [HEADER.projectUrl]: {
      type: 'string',
      format: 'uri',
      description: 'The project, for client custom_supabase',
    },
    [HEADER.projectKey]: { type: 'string', description: 'Its key, for client custom_supabase' },
    ...headers.properties,
  },
})

/** Queries whose names are the caller's: OpenAPI writes them as an object whose members are parameters of their own. */
function openQuery(query: Described = {}): object {
  if (!query.additionalProperties) return {}
  const { description, properties } = query
  const others = { type: 'object', additionalProperties: text, description }
  return { querystring: { ...query, properties: { ...properties, arguments: others } } }
}

const text = { type: 'string' }
const FAILURE = {
  auth: {
    description: 'Failure',
    type: 'object',
    required: ['message', 'code'],
    properties: { message: text, code: { ...text, examples: ['VALIDATION_ERROR'] } },
  },
  gateway: {
    description: 'Failure',
    type: 'object',
    required: ['status', 'message', 'error', 'code', 'request_id'],
    properties: {
      status: { const: 'error' },
      message: text,
      error: { ...text, description: 'What to do, or what the database said' },
      code: { ...text, examples: ['validation_error'] },
      request_id: text,
      data: { type: 'object', properties: { operation: text, details: { type: 'object' } } },
    },
  },
}

const PAGE_FILES = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
} as const

/** The document, and a page that shows it: everything from the package, nothing from elsewhere. */
export function documentRoutes(app: App): void {
  const config = { access: open }
  app.route({
    method: 'GET',
    url: '/openapi.json',
    config,
    schema: { summary: 'This document', response: { 200: Type.Object({}, { additionalProperties: true }) } },
    handler: async (_request, reply) =>
      reply.type('application/json; charset=utf-8').serializer(JSON.stringify).send(app.swagger()),
  })
  app.route({
    method: 'GET',
    url: '/docs',
    config,
    handler: async (_request, reply) =>
      reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8').send(PAGE),
  })
  app.route({
    method: 'GET',
    url: '/docs/start.js',
    config,
    handler: async (_request, reply) => reply.type('text/javascript; charset=utf-8').send(START),
  })
  const folder = path.dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))
  for (const [name, type] of Object.entries(PAGE_FILES)) {
    app.route({
      method: 'GET',
      url: `/docs/${name}`,
      config,
      handler: async (_request, reply) => {
        reply.header('cache-control', 'public, max-age=3600')
        return reply.type(type).send(await readFile(path.join(folder, name)))
      },
    })
  }
}

/** The page's styles are set by script, hence `unsafe-inline` for styles alone. */
const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Gatehouse API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="icon" href="/docs/favicon-32x32.png">
<div id="page"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</html>
`

const START = `SwaggerUIBundle({ url: '/openapi.json', dom_id: '#page', deepLinking: true, validatorUrl: null })\n`
