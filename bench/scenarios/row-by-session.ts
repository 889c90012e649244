import { randomBytes } from 'node:crypto'
import { withClient } from '#test/database.ts'
import { type CheckedLoad, rowByPost, signUp } from '../loads.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { headersWithKey, type Settings } from '../service.ts'
import { ourSide } from '../sides.ts'

const WITHOUT = 'Gatehouse, by the key alone'
const WITH = 'Gatehouse, by session with row-level security'
const suffix = randomBytes(4).toString('hex')
export const ROLES = {
  anonymous: `gatehouse_bench_anon_${suffix}`,
  signedIn: `gatehouse_bench_user_${suffix}`,
}

/** The policy compares a column with the user of the session. */
const secure = (user: string): string => `
alter table bench_rows add owner uuid not null default '${user}';
alter table bench_rows enable row level security;
create policy own on bench_rows using (owner = (current_setting('request.claims')::jsonb->>'user_id')::uuid);
grant select on bench_rows to ${ROLES.signedIn}`

export const rowBySession: Scenario = {
  title: 'row by key, by session with row-level security',
  unit: 'requests per second',
  target: { of: WITH, against: WITHOUT, atLeast: 0.8 },
  hasLatency: true,
  settings: securedClient,
  async open(bench) {
    const { service } = bench
    return [
      ourSide(bench, { name: WITH, ...(await securedRow(bench)) }),
      ourSide(bench, { name: WITHOUT, ...rowByPost(service) }),
    ]
  },
}

/** Settings of a client with row-level security. */
export function securedClient(databaseUrl: string): Settings {
  return {
    SERVICE_CLIENTS__SECURED__URL: databaseUrl,
    SERVICE_CLIENTS__SECURED__ROW_LEVEL_SECURITY__ENABLED: 'true',
    SERVICE_CLIENTS__SECURED__ROW_LEVEL_SECURITY__ANONYMOUS_ROLE: ROLES.anonymous,
    SERVICE_CLIENTS__SECURED__ROW_LEVEL_SECURITY__SIGNED_IN_ROLE: ROLES.signedIn,
  }
}

type Opened = Pick<Bench, 'server' | 'service' | 'after'>

/** The row by the session of a user, on that client. */
export async function securedRow(opened: Opened): Promise<CheckedLoad> {
  const { service } = opened
  const authorization = `Bearer ${await signUp(service.url, 'ada')}`
  const answer = await fetch(`${service.url}/api/auth/get-session`, { headers: { authorization } })
  const { user } = (await answer.json()) as { user: { id: string } } // the response schema of get-session
  await addRoles(opened)
  await service.sql(secure(user.id))
  const headers = { ...(await headersWithKey(service, 'secured')), authorization }
  return rowByPost({ ...service, headers })
}

export async function addRoles({ server, service, after }: Opened): Promise<void> {
  const client = new URL(service.databaseUrl).username
  const onServer = (text: string) => withClient(server.url, async (db) => void (await db.query(text)))
  const names = Object.values(ROLES).join(', ')
  for (const name of Object.values(ROLES))
    await onServer(`do $$ begin create role ${name} nologin; exception when duplicate_object then end $$`)
  await onServer(`grant ${names} to ${client}`)
  // The service's databases, in which they have rights, are dropped after this.
  after(async () => {
    await withClient(service.databaseUrl, (db) => db.query(`drop owned by ${ROLES.signedIn}`))
    await onServer(`drop role ${names}`)
  })
}
