import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { provision } from '#kernel/db/provision.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import { dropDatabase, withClient } from '#test/database.ts'
import { createTemporaryHome, startProgram } from '#test/journeys/program.ts'
import type { Server } from './server.ts'

/**
 * The service in a process of its own, as in production, with databases of its own. Its client `default` has the tables `bench_rows` and
 * `bench_inserted`.
 */
export type Service = {
  readonly url: string
  readonly pid: number
  /** Headers with a key for the client, and the client's name. */
  readonly headers: Readonly<Record<string, string>>
  readonly adminKey: string
  /** URL of the client's database, for peers. */
  readonly databaseUrl: string
  readonly controlUrl: string
  /** Runs SQL as the client's role. */
  sql(text: string): Promise<void>
  stop(): Promise<void>
}

/** Environment variables of the service. */
export type Settings = Readonly<Record<string, string>>

/** Number of rows; ids are 1 to ROWS. */
export const ROWS = 100_000

/** Made before the start: a table made later is unknown to the service for up to a second. */
const TABLES = `
create table bench_rows as
select i as id, 'name ' || i as name, 'user' || i || '@example.com' as email, i % 2 = 0 as active, (i * 1.25)::numeric(12,2) as price,
  now() - i * interval '1 minute' as created_at, case when i % 3 > 0 then repeat('lorem ipsum dolor ', 4) || i end as note,
  jsonb_build_object('k', i) as meta
from generate_series(1, ${ROWS}) i;
alter table bench_rows add primary key (id);
create table bench_inserted (id bigint generated always as identity primary key, name text not null,
  email text, active boolean, price numeric(12,2), created_at timestamptz, note text, meta jsonb)`

/** Everything that production has on. Rate limits count, but their ceilings are out of reach. Older versions know these settings too. */
const AS_IN_PRODUCTION: Settings = {
  SERVICE_RATE_LIMITS__ENABLED: 'true',
  ...Object.fromEntries(
    ['SIGN_IN', 'SIGN_IN_ACCOUNT', 'SIGN_UP', 'DEFAULT'].map((rule) => [
      `SERVICE_RATE_LIMITS__RULES__${rule}__REQUESTS`,
      '1000000',
    ]),
  ),
}

/** Those whose code is in the cache of compiled code. */
const compiled = new Set<string | undefined>()

/**
 * Starts the service of a checkout; `root` undefined is this one. The first time it is started twice: a process that has to compile its
 * code itself costs about 3 % more a request for as long as it lives.
 */
export async function startService(
  server: Server,
  settings: (databaseUrl: string) => Settings = () => ({}),
  root?: string,
): Promise<Service> {
  if (!compiled.has(root)) await (await start(server, settings, root)).stop()
  compiled.add(root)
  return start(server, settings, root)
}

async function start(
  server: Server,
  settings: (databaseUrl: string) => Settings,
  root: string | undefined,
): Promise<Service> {
  const [control, client] = [newRole('control'), newRole('client')]
  const [controlUrl, databaseUrl] = [urlOf(server.url, control), urlOf(server.url, client)]
  const sql = (text: string) => withClient(databaseUrl, async (db) => void (await db.query(text)))
  const cleanups = new AsyncDisposableStack()
  try {
    cleanups.defer(() => withClient(server.url, (db) => dropAll(db, [control, client])))
    const databases = [control, client].map(({ name }) => ({ name, owner: name }))
    await provision(server.url, { roles: [control, client], databases })
    await sql(TABLES)
    await sql('vacuum analyze bench_rows')
    const home = await createTemporaryHome()
    cleanups.defer(home.remove)
    const adminKey = secret()
    const given = {
      DATABASE_URL: controlUrl,
      SERVICE_CLIENTS__DEFAULT__URL: databaseUrl,
      SERVICE_KEY_12: adminKey,
    }
    const program = await startProgram(
      home.folder,
      { ...AS_IN_PRODUCTION, ...given, ...settings(databaseUrl) },
      [],
      root,
    )
    cleanups.defer(async () => void (await program.end('SIGTERM')))
    const service = { url: program.url, pid: program.child.pid ?? 0, adminKey, databaseUrl, controlUrl, sql }
    await addForeignWebhook(service)
    return {
      ...service,
      headers: await headersWithKey(service, 'default'),
      stop: () => cleanups.disposeAsync(),
    }
  } catch (error) {
    await cleanups.disposeAsync()
    throw error
  }
}

const JSON_OF_CLIENT = { 'content-type': 'application/json', [HEADER.client]: 'default' }

export type Called = Pick<Service, 'url' | 'adminKey'>

/** A webhook whose table is another one, so that each write asks for webhooks and finds none. Versions before webhooks answer 404. */
async function addForeignWebhook(service: Called): Promise<void> {
  const asked = {
    route_key: 'gateway_insert',
    table_name: 'public.elsewhere',
    url: 'https://example.com/hook',
  }
  const answer = await callAdmin(service, '/admin/webhooks', { ...asked, client_name: 'default' })
  if (!answer.ok && answer.status !== 404) throw new Error(await answer.text())
}

export async function headersWithKey(service: Called, client: string): Promise<Service['headers']> {
  const asked = { name: 'bench', client_name: client, rights: ['*'] }
  const answer = await callAdmin(service, '/admin/api-keys', asked)
  if (!answer.ok) throw new Error(await answer.text())
  // The response schema IssuedKey.
  const { data } = (await answer.json()) as { data: { api_key: string } }
  return { ...JSON_OF_CLIENT, [HEADER.client]: client, apikey: data.api_key }
}

export const callAdmin = ({ url, adminKey }: Called, path: string, body: object): Promise<Response> =>
  fetch(`${url}${path}`, {
    method: 'POST',
    headers: { ...JSON_OF_CLIENT, [HEADER.adminKey]: adminKey },
    body: JSON.stringify(body),
  })

type Role = { readonly name: string; readonly password: string }

const newRole = (use: string): Role => ({
  name: `gatehouse_bench_${use}_${randomBytes(4).toString('hex')}`,
  password: secret(),
})

async function dropAll(db: pg.Client, roles: readonly Role[]): Promise<void> {
  for (const { name } of roles) await dropDatabase(db, name)
  for (const { name } of roles) await db.query(`drop role if exists ${pg.escapeIdentifier(name)}`)
}

export const urlOf = (serverUrl: string, { name, password }: Role): string =>
  Object.assign(new URL(serverUrl), { username: name, password, pathname: `/${name}` }).href

export const secret = (): string => randomBytes(16).toString('hex')
