import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CrashableServer } from '#test/crashable-server.ts'
import { withClient } from '#test/database.ts'
import { type Cleanup, eventually } from '#test/embedded.ts'
import { ADMIN_KEY, type Answer, actor, PASSWORD } from '#test/harness.ts'
import { AUDIENCE, type JwtIssuer, startJwtIssuer } from '#test/jwt-issuer.ts'
import { OF_ALL_ROUTES, ROUTES } from './routes.ts'
import { type RunningService, startServer, startService } from './services.ts'
import { type FOREIGN, type People, SCHEMA, TABLES } from './statements.ts'

/** Two services on one PostgreSQL server, the second one with two workers, in processes that can be killed, with live tables on a client with row-level security. */
export type World = {
  readonly server: CrashableServer
  readonly services: readonly [RunningService, RunningService]
  readonly people: People
  readonly callers: Readonly<Record<CallerName, Caller>>
  /** Sends to one of the services, after a while to another one. Undefined: none has answered. */
  ask(
    caller: Headers | CallerName | 'operator',
    method: string,
    path: string,
    body?: object,
  ): Promise<Answer | undefined>
  /** Past the gateway. */
  sql(text: string): Promise<readonly Record<string, unknown>[]>
  readonly databaseUrl: string
  /** Makes a user an owner of an organization, past the services. */
  join(userId: string, organizationId: string): Promise<void>
}

type Headers = Readonly<Record<string, string>>
export type CallerName =
  | 'admin'
  | 'reader'
  | 'ada'
  | 'bea'
  | 'cem'
  | 'dan'
  /** An administrator. */
  | 'root'
  | 'stranger'
  /** By a JWT of another issuer. */
  | 'eve'
  | 'fay'
  /** By the JWT of her session. */
  | 'ada by a JWT'
  /** Without a key: for public routes. */
  | 'anyone'
  | 'ada without a key'

/** Its headers change when it signs in again. `renew`: before each stream. */
export type Caller = {
  headers: Readonly<Record<string, string>>
  readonly id: string
  readonly renew?: () => Promise<void>
}

const OPERATOR = { apikey: ADMIN_KEY }

export async function createWorld(t: Cleanup): Promise<World> {
  const server = await startServer(t)
  const databaseUrl = server.url
  const sql = (text: string) => withClient(databaseUrl, async (one) => (await one.query(text)).rows)
  await sql(SCHEMA)
  // One after the other: the first one makes the tables of the control database.
  const issuer = await startJwtIssuer({}, t)
  const trusted = JSON.stringify([{ issuer: issuer.issuer, audience: [AUDIENCE] }])
  const trust = { SERVICE_CLIENTS__APP__ROW_LEVEL_SECURITY__ISSUERS: trusted }
  const services = [
    await startService(t, server, trust),
    await startService(t, server, { ...trust, SERVICE_SERVER__WORKERS: '2' }),
  ] as const

  let turn = 0
  const ask: World['ask'] = async (who, method, path, body) => {
    const headers = who === 'operator' ? OPERATOR : typeof who === 'string' ? callers[who].headers : who
    for (let attempt = 0; attempt < 1_000; attempt++) {
      const { url = '' } = services[turn++ % services.length] ?? {}
      const answer = await actor(url, headers)
        .send(method, path, body && { body })
        .catch(() => undefined)
      assert.notEqual(answer?.status, 500, answer?.text ?? 'no answer')
      if (answer !== undefined && answer.status < 500) return answer
      await sleep(50)
    }
    return undefined
  }
  const control = Object.assign(new URL(server.superuserUrl), { pathname: 'control' }).href
  const join: World['join'] = (user, organization) =>
    eventually(() => {
      const insert = `insert into service.member (id, organization_id, user_id, role, created_at)
        values (gen_random_uuid(), '${organization}', '${user}', 'owner', now()) on conflict do nothing`
      return withClient(control, (one) => one.query(insert)).then(
        () => true,
        () => false,
      )
    })
  const { people, callers } = await populate(ask, issuer)
  const promote = `update service."user" set role = 'admin' where id = '${callers.root.id}'`
  await withClient(control, (one) => one.query(promote))
  // Who leaves is not the only owner.
  await join(people.bea, people.organizations[0])
  const world = { server, services, people, callers, ask, sql, databaseUrl, join }
  await makeLive(world)
  return world
}

/** Also again, as an operator does when a key has another name than its triggers know. */
export async function makeLive({ ask }: Pick<World, 'ask'>): Promise<void> {
  for (const table of TABLES) {
    const made = await ask('admin', 'PUT', `/management/tables/${table}/realtime`, { enabled: true })
    assert.equal(made?.status, 200, made?.text ?? 'no answer')
  }
}

type Ask = World['ask']

/** Milliseconds for which a JWT is used for further streams. */
const RENEWED = 2_000

async function populate(ask: Ask, issuer: JwtIssuer): Promise<Pick<World, 'people' | 'callers'>> {
  const ok = async (asked: Promise<Answer | undefined>) => {
    const answer = await asked
    assert.ok(answer !== undefined && answer.status < 300, answer?.text ?? 'no answer')
    return answer.body
  }
  const keyWith = async (...rights: string[]) => {
    const asked = { name: 'chaos', client_name: 'app', rights }
    const { data } = await ok(ask('operator', 'POST', '/admin/api-keys', asked))
    const headers: Record<string, string> = { apikey: data.api_key, 'x-service-client': 'app' }
    return { headers, id: data.record.id as string }
  }
  const bypass = 'gateway.bypass_row_level_security'
  const admin = await keyWith('management.*', 'management.functions.write', 'gateway.*', bypass)
  const reader = await keyWith('gateway.read', bypass)
  const stranger = await keyWith('gateway.read')
  const signUp = async (name: string): Promise<Caller> => {
    const asked = { name, email: `${name}@example.com`, password: PASSWORD }
    const { token, user } = await ok(ask('operator', 'POST', '/api/auth/sign-up/email', asked))
    return { headers: { ...stranger.headers, authorization: `Bearer ${token}` }, id: user.id }
  }
  const [ada, bea, cem, dan, root] = [
    await signUp('ada'),
    await signUp('bea'),
    await signUp('cem'),
    await signUp('dan'),
    await signUp('root'),
  ]
  const found = async ({ headers: { authorization = '' } }: Caller, slug: string): Promise<string> => {
    return (await ok(ask({ authorization }, 'POST', '/api/auth/organization/create', { name: slug, slug })))
      .id
  }
  const organizations = [
    await found(cem, 'first'),
    await found(cem, 'second'),
    await found(bea, 'other'),
  ] as const
  for (const route of Object.values(ROUTES))
    await ok(ask('operator', 'POST', '/admin/public-routes', { ...OF_ALL_ROUTES, ...route }))
  const bearing = (id: string, signed: (count: number) => Promise<string>): Caller => {
    let [count, until] = [0, 0]
    const caller: Caller = {
      headers: stranger.headers,
      id,
      async renew() {
        if (performance.now() < until) return
        until = performance.now() + RENEWED
        caller.headers = { ...stranger.headers, authorization: `Bearer ${await signed(count++)}` }
      },
    }
    return caller
  }
  /** Some end while they are used. */
  const foreign = (sub: (typeof FOREIGN)[number]) =>
    bearing(sub, (count) =>
      issuer.sign({ sub, exp: Math.floor(Date.now() / 1_000) + (count % 2 === 0 ? 3 : 60) }),
    )
  const tokenOf = async ({ headers: { authorization = '' } }: Caller): Promise<string> =>
    (await ok(ask({ authorization }, 'GET', '/api/auth/token'))).token
  const withoutKey = ({ headers: { authorization = '' }, id }: Caller): Caller => ({
    headers: { authorization },
    id,
  })
  const more = {
    eve: foreign('eve'),
    fay: foreign('fay'),
    'ada by a JWT': bearing(ada.id, () => tokenOf(ada)),
    anyone: { headers: {}, id: '' },
    'ada without a key': withoutKey(ada),
  }
  for (const { renew } of Object.values(more) as Caller[]) await renew?.()
  return {
    people: { ada: ada.id, bea: bea.id, dan: dan.id, organizations },
    callers: { admin, reader, stranger, ada, bea, cem, dan, root, ...more },
  }
}

/** A new session of the caller. */
export async function signIn({ ask, callers }: World, name: 'dan' | 'root'): Promise<void> {
  const caller = callers[name]
  const asked = { email: `${name}@example.com`, password: PASSWORD }
  const answer = await ask({}, 'POST', '/api/auth/sign-in/email', asked)
  assert.equal(answer?.status, 200, answer?.text ?? 'no answer')
  caller.headers = { ...caller.headers, authorization: `Bearer ${answer.body.token}` }
}

/** Milliseconds: longer than a busy machine needs, and than several requests that the services give up. */
const PATIENCE = 600_000

/** Resolves when both services and the database answer. */
export async function allAnswer({ services, callers }: World): Promise<void> {
  for (const { url, log } of services) {
    const until = performance.now() + PATIENCE
    for (;;) {
      const said = await actor(url, callers.admin.headers)
        .post('/gateway/fetch', { table_name: 'team' })
        .then(({ status, text }) => (status === 200 ? undefined : text), String)
      if (said === undefined) break
      assert.ok(performance.now() < until, `${url} does not answer: ${said}\n${log().slice(-5_000)}`)
      await sleep(20)
    }
  }
}
