import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import swagger from '@fastify/swagger'
import type { RouteOptions } from 'fastify'
import { Type } from 'typebox'
import type { Config } from '../../config/config.ts'
import { documentedEvents } from '../../events/documented-events.ts'
import type { Kernel } from '../../kernel.ts'
import { openedOnce } from '../../opened-once.ts'
import { VERSION } from '../../version.ts'
import { open } from '../access.ts'
import { compressedOnce } from '../compression.ts'
import { CONSOLE_COOKIE, HEADER } from '../header-names.ts'
import { ownHost } from '../own-host.ts'
import type { App } from '../surface.ts'
import { type JsonSchema, withComponents } from './components.ts'
import { withOptionalBodies, withSharedFailures } from './document-operations.ts'
import { createOperationNames, documentedOperation, type Feature } from './operations.ts'

/** Collects the routes that are added after it into one OpenAPI 3.1 document for both surfaces. */
export function describeRoutes(app: App, { config }: Kernel): void {
  const features = new Map<string, Feature>()
  const nameOf = createOperationNames()
  const documented = (route: RouteOptions): object => {
    const { schema, config: { feature } = {} } = route
    if (schema !== undefined && feature !== undefined) features.set(feature.name, feature)
    return { ...schema, ...documentedOperation(route, nameOf(route)) }
  }
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
      components: { securitySchemes: securitySchemes(config) },
    },
    transform: ({ url, route }) => ({ url, schema: documented(route) }),
    // The library's types know this object as a document of any version.
    transformObject: (made) =>
      withSharedFailures(
        withComponents(
          withOptionalBodies({
            ...('openapiObject' in made ? made.openapiObject : made.swaggerObject),
            tags: [...features.values()],
            webhooks: documentedEvents(WEBHOOKS),
          } as JsonSchema),
        ),
      ),
  })
}

/** The tag of the feature that sends them. */
const WEBHOOKS = 'Webhooks'

/** Every way in which a request can carry a credential. */
const securitySchemes = ({ session }: Config) =>
  ({
    sessionToken: {
      type: 'http',
      scheme: 'bearer',
      description: 'A session token from the answer of sign-in',
    },
    sessionHeader: {
      type: 'apiKey',
      in: 'header',
      name: HEADER.sessionToken,
      description: `A session token, where the client has row-level security; also ${HEADER.sessionBearer}`,
    },
    sessionCookie: {
      type: 'apiKey',
      in: 'cookie',
      name: session.cookie_name,
      description: 'A session token from the cookie of sign-in',
    },
    operatorSession: {
      type: 'apiKey',
      in: 'header',
      name: HEADER.serviceSession,
      description: `1: the session acts by the rights of its user’s roles (auth.admin.roles), in place of a key. Its cookie is ${CONSOLE_COOKIE} (with the prefix __Host- where server.public_url is https), from pages of the service itself; a sign-in with this header sets it. With ${HEADER.expectedUser} too, the session of any other user is refused: 409 another_user`,
    },
    apiKey: {
      type: 'apiKey',
      in: 'header',
      name: HEADER.apiKey,
      description: `Also ${HEADER.serviceKey}, ${HEADER.apiKeyAlias}, ?api_key=`,
    },
    apiKeyBearer: { type: 'http', scheme: 'bearer', description: 'An API key, svc_…' },
    adminKey: {
      type: 'apiKey',
      in: 'header',
      name: HEADER.adminKey,
      description: 'The static admin key; also in any header of apiKey',
    },
  }) as const

/** The tag of the routes below. */
export const REFERENCE: Feature = { name: 'Reference', description: 'This document' }

const PAGE_FILES = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
} as const

/**
 * The document, and a page that shows it, with files of the npm package only. Each is made once: strangers may ask for thousands and read none
 * of them, and answers that wait share the bytes.
 */
export function addReferenceRoutes(app: App, kernel: Kernel): void {
  const config = { access: ownHost(kernel) }
  let document: ReturnType<typeof compressedOnce> | undefined
  app.route({
    method: 'GET',
    url: '/openapi.json',
    config: { access: open },
    schema: {
      operationId: 'getOpenapi',
      summary: 'This document',
      response: { 200: Type.Object({}, { additionalProperties: true }) },
    },
    handler: async ({ headers }, reply) => {
      document ??= compressedOnce(Buffer.from(JSON.stringify(app.swagger())))
      const { encoding, bytes } = await document([headers['accept-encoding']].flat().join(','))
      // Otherwise it would be 0.8 MB, ten times what the rest of the console's page about it is.
      if (encoding !== undefined) reply.header('content-encoding', encoding)
      return reply
        .header('vary', 'Origin, Accept-Encoding')
        .type('application/json; charset=utf-8')
        .send(bytes)
    },
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
    const content = openedOnce(() => readFile(path.join(folder, name)))
    app.route({
      method: 'GET',
      url: `/docs/${name}`,
      config,
      handler: async (_request, reply) => {
        const bytes = await content.get()
        return reply.header('cache-control', 'public, max-age=3600').type(type).send(bytes)
      },
    })
  }
}

/** `unsafe-inline` for styles, because the page's script sets them. */
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
