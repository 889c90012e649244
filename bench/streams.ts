import { fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { createPostgresDriver } from '#databases/drivers/postgres/driver.ts'
import { rowsOf } from './answers.ts'
import type { HolderAnswer, HolderOrder, Opening } from './load/stream-holder.ts'
import { stop } from './peer.ts'
import type { Bench } from './scenario.ts'
import { ROLES } from './scenarios/row-by-session.ts'
import { callAdmin, type Service, type Settings } from './service.ts'

/** Streams of live rows in a process of their own. Its processor time, µs, is part of the load. */
export type Streams = {
  open(name: string, opening: Opening): Promise<number>
  /** Resolves when so many changes in all have come by the streams of this name. */
  told(name: string, changes: number): Promise<number>
}

export function holdStreams({ after }: Pick<Bench, 'after'>): Streams {
  const child = fork(path.join(import.meta.dirname, 'load/stream-holder.ts'), { serialization: 'advanced' })
  after(() => stop(child))
  const perform = async (order: HolderOrder): Promise<number> => {
    const answered = once(child, 'message')
    child.send(order)
    const [answer] = (await answered) as [HolderAnswer] // the program sends nothing else
    if ('failure' in answer) throw new Error(answer.failure)
    return answer.processor
  }
  return {
    open: (name, opening) => perform({ kind: 'open', name, ...opening }),
    told: (name, changes) => perform({ kind: 'wait', name, changes }),
  }
}

const CLIENT = 'secured'

/** A second client of the database, with row-level security, and places for many streams of one address. */
export const liveSettings = (databaseUrl: string): Settings => ({
  SERVICE_CLIENTS__SECURED__URL: databaseUrl,
  SERVICE_CLIENTS__SECURED__ROW_LEVEL_SECURITY__ENABLED: 'true',
  SERVICE_CLIENTS__SECURED__ROW_LEVEL_SECURITY__ANONYMOUS_ROLE: ROLES.anonymous,
  SERVICE_CLIENTS__SECURED__ROW_LEVEL_SECURITY__SIGNED_IN_ROLE: ROLES.signedIn,
  ...Object.fromEntries(
    ['STREAMS', 'STREAMS_PER_CALLER', 'STREAMS_PER_ADDRESS', 'CONNECTIONS', 'CONNECTIONS_PER_ADDRESS'].map(
      (limit) => [`SERVICE_LIMITS__${limit}`, '15000'],
    ),
  ),
})

type Headers = Readonly<Record<string, string>>

/** A key of that client that no policy binds. */
export async function operatorKey(service: Service): Promise<Headers> {
  const rights = ['*', 'gateway.bypass_row_level_security', 'management.functions.write']
  const asked = { name: 'live', client_name: CLIENT, rights }
  const answer = await callAdmin(service, '/admin/api-keys', asked)
  if (!answer.ok) throw new Error(await answer.text())
  const { data } = (await answer.json()) as { data: { api_key: string } } // the response schema IssuedKey
  return { 'content-type': 'application/json', 'x-service-client': CLIENT, apikey: data.api_key }
}

export async function call(
  { url }: Service,
  headers: Headers,
  method: string,
  path: string,
  body: object,
): Promise<void> {
  const answer = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`)
}

/** Makes a table with SQL, and makes it live. Not over HTTP: acts of operators need a database for the audit log, which the service has none of here. */
export async function makeLive(
  service: Service,
  headers: Headers,
  table: string,
  columns: string,
): Promise<void> {
  // Through the gateway, which knows the table then.
  await call(service, headers, 'POST', '/gateway/query', { query: `create table ${table} (${columns})` })
  const { changes, management, close } = createPostgresDriver({ url: service.databaseUrl, ...DRIVER })
  try {
    const { statements, ...conditions } = await changes.enable({ schema: 'public', table })
    await management.run(statements, conditions)
  } finally {
    await close()
  }
}

const DRIVER = {
  maxConnections: 4,
  sqlConnections: 1,
  maxWaiting: 100,
  connectTimeout: 5_000,
  statementTimeout: 10_000,
  idleTimeout: 10_000,
  applicationName: 'bench',
  maxRows: 100,
  answerBytes: 33_554_432,
}

/** Headers of so many users with a session each, by their ids. */
export async function usersOf(
  { controlUrl }: Service,
  { apikey = '' }: Headers,
  count: number,
  name = 'live',
): Promise<ReadonlyMap<string, Headers>> {
  const rows = await rowsOf(controlUrl, addUsers(count, name))
  return new Map(
    rows.map(({ id, token }) => [
      String(id),
      {
        'content-type': 'application/json',
        'x-service-client': CLIENT,
        apikey,
        authorization: `Bearer ${token}`,
      },
    ]),
  )
}

/** Tokens have 43 characters. */
const addUsers = (count: number, name: string): string => `
with made as (
  select gen_random_uuid() as id, gen_random_uuid() as session, rpad('${name}-' || i || '-', 43, 'x') as token, i from generate_series(1, ${count}) i
), added as (
  insert into service."user" (id, name, email, created_at, updated_at)
  select id, '${name}', '${name}' || i || '@example.com', now(), now() from made
), begun as (
  insert into service.session (id, token_hash, user_id, expires_at, created_at, updated_at, remembered)
  select session, sha256(convert_to(token, 'utf8')), id, now() + interval '1 day', now(), now(), true from made
)
select id, token from made order by i`
