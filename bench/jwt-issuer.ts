import { createPrivateKey, sign } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
import type { Bench } from './scenario.ts'
import { ROLES } from './scenarios/row-by-session.ts'
import type { Settings } from './service.ts'

const AUDIENCE = 'https://api.example.com'
/** Seconds: longer than any scenario takes. */
const LIFETIME = 12 * 3_600

export type Issuer = {
  readonly url: string
  /** A valid token of the subject. */
  token(subject: string): string
}

/** An issuer on loopback. */
export async function startIssuer({ after }: Pick<Bench, 'after'>): Promise<Issuer> {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  const header = { alg: 'ES256', kid: 'bench' }
  const keys = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), ...header, use: 'sig' }] })
  const server = createServer((_request, response) =>
    response.setHeader('content-type', 'application/json').end(keys),
  ).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  after(async () => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}` // a TCP server's
  const key = createPrivateKey({ key: await exportJWK(privateKey), format: 'jwk' })
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return {
    url,
    // By the synchronous function: a hundred thousand by jose would take minutes.
    token(subject) {
      const iat = Math.floor(Date.now() / 1_000)
      const claims = { iss: url, aud: AUDIENCE, sub: subject, iat, exp: iat + LIFETIME }
      const signed = `${part(header)}.${part(claims)}`
      const mac = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' })
      return `${signed}.${mac.toString('base64url')}`
    },
  }
}

/** A client `secured` whose rows are guarded by tokens of the issuer. */
export const securedBy =
  (issuer: string) =>
  (databaseUrl: string): Settings => ({
    SERVICE_OUTBOUND__ALLOW_HTTP: 'true',
    SERVICE_OUTBOUND__ALLOW_NETWORKS: '127.0.0.0/8',
    SERVICE_CLIENTS__SECURED__URL: databaseUrl,
    SERVICE_CLIENTS__SECURED__ROW_LEVEL_SECURITY__ENABLED: 'true',
    SERVICE_CLIENTS__SECURED__ROW_LEVEL_SECURITY__ANONYMOUS_ROLE: ROLES.anonymous,
    SERVICE_CLIENTS__SECURED__ROW_LEVEL_SECURITY__SIGNED_IN_ROLE: ROLES.signedIn,
    SERVICE_CLIENTS__SECURED__ROW_LEVEL_SECURITY__ISSUERS: JSON.stringify([
      { issuer, jwks_url: `${issuer}/keys`, audience: [AUDIENCE] },
    ]),
  })
