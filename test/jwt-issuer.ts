import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import type { Cleanup } from './embedded.ts'
import { startLoopbackServer } from './loopback-server.ts'

export type SigningKey = {
  readonly alg: string
  readonly kid: string
  readonly privateKey: CryptoKey
  /** As it is published. */
  readonly jwk: JWK
}

/** An issuer on loopback that publishes its metadata and its keys, and signs whatever the test asks for. */
export type JwtIssuer = {
  readonly issuer: string
  readonly jwksUrl: string
  /** Paths of the requests so far. */
  readonly requests: string[]
  /** The published keys; the first one signs. */
  keys: SigningKey[]
  /** Answers each request in place of the issuer, if it returns true. */
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean
  /** Requests for keys so far. */
  reads(): number
  /** A token for `AUDIENCE`, valid for five minutes, unless the claims say otherwise. An undefined claim is left out. */
  sign(
    claims: Readonly<Record<string, unknown>>,
    more?: { readonly key?: SigningKey; readonly header?: object },
  ): Promise<string>
}

export const AUDIENCE = 'https://api.example.com'

let count = 0

export async function newKey(alg = 'ES256'): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  const kid = `key-${++count}`
  return { alg, kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}

/** `now`: seconds since 1970 by the clock of the service. */
export async function startJwtIssuer(
  { now = () => Date.now() / 1_000 } = {},
  t?: Cleanup,
): Promise<JwtIssuer> {
  const answers: Readonly<Record<string, () => object>> = {
    '/.well-known/openid-configuration': () => ({ issuer: issuer.issuer, jwks_uri: issuer.jwksUrl }),
    '/keys': () => ({ keys: issuer.keys.map(({ jwk }) => jwk) }),
  }
  const listener: RequestListener = (request, response) => {
    issuer.requests.push(request.url ?? '')
    if (issuer.intercept(request, response)) return
    const answer = answers[request.url ?? '']
    response
      .writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' })
      .end(JSON.stringify(answer?.() ?? {}))
  }
  const server = await startLoopbackServer(listener, '127.0.0.1', t)
  const issuer: JwtIssuer = {
    issuer: server.url,
    jwksUrl: `${server.url}/keys`,
    requests: [],
    keys: [await newKey()],
    intercept: () => false,
    reads: () => issuer.requests.filter((path) => path === '/keys').length,
    async sign(claims, { key = issuer.keys[0], header = {} } = {}) {
      if (key === undefined) throw new Error('the issuer has no key')
      const iat = Math.floor(now())
      const all = { iss: issuer.issuer, aud: AUDIENCE, iat, exp: iat + 300, ...claims }
      return new SignJWT(all)
        .setProtectedHeader({ alg: key.alg, kid: key.kid, ...header })
        .sign(key.privateKey)
    },
  }
  return issuer
}
