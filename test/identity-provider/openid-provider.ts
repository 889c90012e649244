import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import Provider, { type Configuration } from 'oidc-provider'

/** A person with an account at the provider. */
export type Person = {
  readonly sub: string
  readonly email?: string
  readonly email_verified?: boolean
  readonly name?: string
  readonly picture?: string
}

/**
 * A real OpenID provider on loopback, with PKCE required and rotated refresh tokens. It asks nobody: the person of `visitor` is signed in
 * there and consents.
 */
export type OpenidProvider = {
  readonly issuer: string
  /** The person who is signed in at the provider; undefined if the person declines. */
  visitor: Person | undefined
  /** Answers each request in place of the provider, if it returns true. */
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean
  /** Paths of the requests so far, without their queries. */
  readonly requests: string[]
  /** From now on the provider signs with another key, and publishes that one only. */
  rotateKey(): Promise<void>
  /** Starts to answer for these clients. */
  serve(clients: readonly Client[]): void
  /** The key that signs ID tokens. */
  signingKey(): SigningKey
  /** An ID token for the client, valid for five minutes, unless the claims say otherwise. */
  idToken(client: string, claims: Record<string, unknown>, key?: SigningKey): Promise<string>
}

export type SigningKey = { readonly privateKey: CryptoKey; readonly kid: string }
export type Client = {
  readonly id: string
  readonly secret: string
  readonly redirectUris: readonly string[]
}

let count = 0

export async function startOpenidProvider(): Promise<OpenidProvider> {
  const people = new Map<string, Person>()
  let answer: ((request: IncomingMessage, response: ServerResponse) => unknown) | undefined
  let clients: readonly Client[] = []
  let key = await newKey()
  const server = createServer((request, response) => {
    openid.requests.push(new URL(request.url ?? '', openid.issuer).pathname)
    if (openid.intercept(request, response)) return
    answer?.(request, response)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  after(() => server.close().closeAllConnections())
  // The library types the address of any kind of server.
  const { port } = server.address() as AddressInfo

  const build = () => {
    const provider = new Provider(openid.issuer, configuration(clients, key.jwk, people))
    const callback = provider.callback()
    answer = (request, response) =>
      request.url?.startsWith('/interaction/')
        ? interact(provider, request, response)
        : callback(request, response)
  }
  const interact = async (provider: Provider, request: IncomingMessage, response: ServerResponse) => {
    const { params } = await provider.interactionDetails(request, response)
    const { visitor } = openid
    if (visitor === undefined) {
      const denial = { error: 'access_denied', error_description: 'The person declines' }
      return provider.interactionFinished(request, response, denial)
    }
    people.set(visitor.sub, visitor)
    const grant = new provider.Grant({ accountId: visitor.sub, clientId: String(params.client_id) })
    grant.addOIDCScope(String(params.scope))
    const result = { login: { accountId: visitor.sub }, consent: { grantId: await grant.save() } }
    return provider.interactionFinished(request, response, result)
  }

  const openid: OpenidProvider = {
    issuer: `http://127.0.0.1:${port}`,
    visitor: undefined,
    intercept: () => false,
    requests: [],
    async rotateKey() {
      key = await newKey()
      build()
    },
    serve(given) {
      clients = given
      build()
    },
    signingKey: () => key,
    async idToken(client, claims, { privateKey, kid } = key) {
      const seconds = Math.floor(Date.now() / 1_000)
      const all = { iss: openid.issuer, aud: client, iat: seconds, exp: seconds + 300, ...claims }
      return new SignJWT(all).setProtectedHeader({ alg: 'RS256', kid }).sign(privateKey)
    },
  }
  return openid
}

async function newKey(): Promise<SigningKey & { readonly jwk: JWK }> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const kid = `key-${++count}`
  return { privateKey, kid, jwk: { ...(await exportJWK(privateKey)), kid, alg: 'RS256', use: 'sig' } }
}

const configuration = (
  clients: readonly Client[],
  key: JWK,
  people: ReadonlyMap<string, Person>,
): Configuration => ({
  clients: clients.map(({ id, secret, redirectUris }) => ({
    client_id: id,
    client_secret: secret,
    redirect_uris: [...redirectUris],
    response_types: ['code'],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: 'client_secret_post',
  })),
  jwks: { keys: [key] },
  cookies: { keys: ['a key of the tests'] },
  pkce: { required: () => true },
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'picture'] },
  features: { devInteractions: { enabled: false } },
  interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
  issueRefreshToken: async () => true,
  rotateRefreshToken: true,
  ttl: {
    AccessToken: 600,
    AuthorizationCode: 60,
    Grant: 86_400,
    // Tests turn the clock of the service forward.
    IdToken: 86_400,
    Interaction: 600,
    RefreshToken: 86_400,
    Session: 600,
  },
  findAccount: (_context, sub) => ({
    accountId: sub,
    claims: async () => ({ ...people.get(sub), sub }),
  }),
})
