import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import type { JwtKeys } from '#identity/jwt/key-ring.ts'
import { open } from '#kernel/http/access.ts'
import { named } from '#kernel/http/document/components.ts'
import type { Feature } from '#kernel/http/document/operations.ts'
import { edge } from '#kernel/http/failures.ts'
import { OneOf } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess } from '../door/access.ts'
import { HOOK_FAILURES } from '../errors.ts'
import { asAnswer } from '../redirect.ts'
import { CLAIMS, type Tokens } from './jwt.ts'

const PublicKey = Type.Object(
  {
    kid: Type.String(),
    alg: OneOf(['ES256', 'EdDSA']),
    use: Type.Literal('sig'),
    kty: OneOf(['EC', 'OKP']),
    crv: OneOf(['P-256', 'Ed25519']),
    x: Type.String(),
    y: Type.Optional(Type.String()),
  },
  named('JsonWebKey'),
)
const PublicKeys = Type.Object({ keys: Type.Array(PublicKey) }, named('JsonWebKeySet'))

const ServerMetadata = Type.Object(
  {
    issuer: Type.String({ format: 'uri', description: '`iss` of tokens' }),
    jwks_uri: Type.String({ format: 'uri' }),
    response_types_supported: Type.Array(Type.String()),
    subject_types_supported: Type.Array(Type.String()),
    id_token_signing_alg_values_supported: Type.Array(Type.String()),
    claims_supported: Type.Array(Type.String()),
  },
  named('ServerMetadata'),
)

/** Seconds for which anyone may keep what is published; `TURN` in identity/jwt/keys.ts counts on it. */
const PUBLIC_FOR = 3_600

/** Once the answer is there: a failure that caches keep for an hour would be one for every verifier behind them. */
const makePublic = (reply: FastifyReply): void =>
  void reply.header('cache-control', `public, max-age=${PUBLIC_FOR}`)

const withoutBody = (reply: FastifyReply): FastifyReply => reply.send()

export function jwtRoutes(
  app: App,
  { config }: Kernel,
  access: AuthAccess,
  { keys, tokens }: { readonly keys: JwtKeys; readonly tokens: Tokens },
): void {
  if (!config.auth.jwt.enabled) return
  app.route({
    method: 'GET',
    url: '/token',
    config: { access: access.signedIn, failures: ['TEMPLATE_NOT_FOUND', ...HOOK_FAILURES] },
    schema: {
      operationId: 'getToken',
      summary: 'A JSON web token (JWT) of the session, for services that verify it by themselves',
      querystring: Type.Object({
        template: Type.Optional(
          Type.String({
            maxLength: 40,
            description: 'A name in `auth.jwt.templates`: a token for its audience',
          }),
        ),
      }),
      response: { 200: Type.Object({ token: Type.String() }) },
    },
    handler: async ({ method, caller, query, kernel }, reply) => {
      // The answer to HEAD would not show it.
      if (method === 'HEAD') return asAnswer(withoutBody(reply))
      const token = await tokens.of(kernel, caller, query.template)
      if (token === undefined) throw edge('service_unavailable', { cause: new Error(UNREADABLE) })
      return { token }
    },
  })
  keySetRoutes(app, keys, { getJwks: '/jwks', getWellKnownJwks: '/.well-known/jwks.json' })
}

const UNREADABLE =
  'no secret opens the key that signs JSON web tokens: gatehouse jwt-keys rotate --now makes another'

function keySetRoutes(app: App, keys: JwtKeys, urls: Readonly<Record<string, string>>): void {
  for (const [operationId, url] of Object.entries(urls))
    app.route({
      method: 'GET',
      url,
      config: { access: open },
      schema: {
        operationId,
        summary: 'The public keys that verify tokens (RFC 7517)',
        response: { 200: PublicKeys },
      },
      handler: async (_request, reply) => {
        const { jwks } = await keys.ringWithKeys()
        makePublic(reply)
        return jwks
      },
    })
}

/** The tag of the routes below. */
export const DISCOVERY: Feature = {
  name: 'Discovery',
  description: 'Where verifiers of tokens find the keys, at the root of the service',
}

/** RFC 8414, under the name of OpenID Connect as well, which libraries look for. */
const METADATA = {
  getServerMetadata: '/.well-known/oauth-authorization-server',
  getOpenidConfiguration: '/.well-known/openid-configuration',
}

export function discoveryRoutes(app: App, { config, publicUrl }: Kernel, keys: JwtKeys): void {
  for (const [operationId, url] of Object.entries(METADATA))
    app.route({
      method: 'GET',
      url,
      config: { access: open },
      schema: {
        operationId,
        summary: 'Issuer of tokens and address of its keys (RFC 8414)',
        response: { 200: ServerMetadata },
      },
      handler: async (_request, reply) => {
        const { jwks } = await keys.ringWithKeys()
        makePublic(reply)
        return {
          issuer: publicUrl(),
          jwks_uri: `${publicUrl()}${config.auth.base_path}/jwks`,
          // Both specifications require these members. Nothing is authorized here.
          response_types_supported: ['none'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: [...new Set(jwks.keys.map(({ alg }) => alg))],
          claims_supported: [...CLAIMS],
        }
      },
    })
  keySetRoutes(app, keys, { getRootJwks: '/.well-known/jwks.json' })
}
