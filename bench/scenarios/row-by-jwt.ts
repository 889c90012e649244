import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { rowByPost, signUp } from '../loads.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { headersWithKey, type Settings, startService } from '../service.ts'
import { httpSide, OURS } from '../sides.ts'
import { addRoles, ROLES } from './row-by-session.ts'

const BY_SESSION = 'Gatehouse, by session'
const BY_JWT = 'Gatehouse, by a JWT of another issuer'
const AUDIENCE = 'https://api.example.com'
const SUBJECT = 'other|ada'

/** The rows belong to both callers. */
const secure = (user: string): string => `
alter table bench_rows add owners text[] not null default '{${user},${SUBJECT}}';
alter table bench_rows enable row level security;
create policy own on bench_rows using ((current_setting('request.claims')::jsonb->>'user_id') = any (owners));
grant select on bench_rows to ${ROLES.signedIn}`

/** The same row by the same process. The token is in its cache after the first request. */
export const rowByJwt: Scenario = {
  title: 'row by key, by a JWT of another issuer',
  unit: 'requests per second',
  // The time of a request is at most 1.15 of the other one's.
  target: { of: BY_JWT, against: BY_SESSION, atLeast: 0.87 },
  hasLatency: true,
  async open(bench) {
    const issuer = await startIssuer(bench)
    const service = await startService(bench.server, settingsFor(issuer.url))
    bench.after(service.stop)
    const token = await signUp(service.url, 'ada')
    const answer = await fetch(`${service.url}/api/auth/get-session`, {
      headers: { authorization: `Bearer ${token}` },
    })
    const { user } = (await answer.json()) as { user: { id: string } } // the response schema of get-session
    await addRoles({ ...bench, service })
    await service.sql(secure(user.id))
    const key = await headersWithKey(service, 'secured')
    const side = (name: string, bearer: string) => {
      const headers = { ...key, authorization: `Bearer ${bearer}` }
      return httpSide(bench.loader, {
        name,
        pid: service.pid,
        about: OURS,
        ...rowByPost({ ...service, headers }),
      })
    }
    return [side(BY_JWT, issuer.token), side(BY_SESSION, token)]
  },
}

const settingsFor =
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

/** An issuer on loopback, and a token of it that is valid for longer than the scenario takes. */
async function startIssuer({ after }: Bench): Promise<{ readonly url: string; readonly token: string }> {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
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
  const token = await new SignJWT({ sub: SUBJECT })
    .setProtectedHeader(header)
    .setIssuer(url)
    .setAudience(AUDIENCE)
    .setIssuedAt()
    .setExpirationTime('12h')
    .sign(privateKey)
  return { url, token }
}
