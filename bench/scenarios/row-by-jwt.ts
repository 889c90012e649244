import { securedBy, startIssuer } from '../jwt-issuer.ts'
import { rowByPost, signUp } from '../loads.ts'
import type { Scenario } from '../scenario.ts'
import { headersWithKey, startService } from '../service.ts'
import { httpSide, OURS } from '../sides.ts'
import { addRoles, ROLES } from './row-by-session.ts'

const BY_SESSION = 'Gatehouse, by session'
const BY_JWT = 'Gatehouse, by a JWT of another issuer'
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
    const service = await startService(bench.server, securedBy(issuer.url))
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
    return [side(BY_JWT, issuer.token(SUBJECT)), side(BY_SESSION, token)]
  },
}
