import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import pg from 'pg'
import { joinEmbedded } from '#kernel/db/embedded/join.ts'
import { provision } from '#kernel/db/provision.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import { withClient } from '#test/database.ts'
import { createTemporaryHome, startProgram } from '#test/journeys/program.ts'

/** The environment of a benchmark: the service in a separate process, with one table `bench_rows` in its client `default`. */
export type Fixture = {
  /** Description for the output: `PostgreSQL 18.4, embedded`. */
  readonly describes: string
  readonly url: string
  /** Headers with a key for the client, and the client's name. */
  readonly headers: Readonly<Record<string, string>>
  /** URL of the client's database, for peers. */
  readonly databaseUrl: string
  /** URL of the control database. */
  readonly controlUrl: string
  /** Runs SQL as the client's role. */
  sql(text: string): Promise<void>
}

/** Number of rows; ids are 1 to ROWS. */
export const ROWS = 100_000

const TABLE = `
create table bench_rows as
select i as id, 'name ' || i as name, 'user' || i || '@example.com' as email, i % 2 = 0 as active, (i * 1.25)::numeric(12,2) as price,
  now() - i * interval '1 minute' as created_at, case when i % 3 > 0 then repeat('lorem ipsum dolor ', 4) || i end as note,
  jsonb_build_object('k', i) as meta
from generate_series(1, ${ROWS}) i;
alter table bench_rows add primary key (id)`

type Work = (fixture: Fixture) => Promise<void>

/** Environment variables of the service. */
type Settings = Readonly<Record<string, string>>

/**
 * Runs a benchmark on the server of TEST_DATABASE_URL, or on the embedded one. Removes everything afterwards, even after Ctrl-C.
 */
export async function withFixture(work: Work, settings: Settings = {}): Promise<void> {
  const interrupted = new Promise<never>((_, reject) => {
    process.on('SIGINT', () => reject(new Error('interrupted')))
  })
  // The rejection may come before anything awaits it.
  interrupted.catch(() => {})
  const untilInterrupted: Work = (fixture) => Promise.race([work(fixture), interrupted])
  const home = await createTemporaryHome()
  try {
    const serverUrl = process.env.TEST_DATABASE_URL
    if (serverUrl) await onServer(serverUrl, home.folder, settings, untilInterrupted)
    else await onEmbedded(home.folder, settings, untilInterrupted)
  } finally {
    await home.remove()
  }
}

/** As with `npm start`: the service runs its embedded server and issues the default key. */
async function onEmbedded(folder: string, settings: Settings, work: Work): Promise<void> {
  const program = await startProgram(folder, settings)
  try {
    const data = (file: string) => path.join(folder, 'data', file)
    const password = (await readFile(data('postgres-password'), 'utf8')).trim()
    const server = await joinEmbedded(data('postgres'), password)
    if (server === undefined) throw new Error('the service does not run an embedded server')
    const databaseUrl = server.url('postgres', password, 'gatehouse_default')
    const sql = asRole(databaseUrl, 'gatehouse_default')
    await makeTable(sql)
    const key = (await readFile(data('default-key'), 'utf8')).trim()
    const describes = `PostgreSQL ${server.version}, embedded`
    const controlUrl = server.url('postgres', password, 'gatehouse')
    await work({ describes, url: program.url, headers: headersFor(key), databaseUrl, controlUrl, sql })
  } finally {
    await program.end('SIGTERM')
  }
}

async function onServer(serverUrl: string, folder: string, settings: Settings, work: Work): Promise<void> {
  const [control, client] = [newRole('control'), newRole('client')]
  const roles = [control, client]
  try {
    await provision(serverUrl, { roles, databases: roles.map(({ name }) => ({ name, owner: name })) })
    const [controlUrl, databaseUrl] = [urlOf(serverUrl, control), urlOf(serverUrl, client)]
    await onService(folder, { settings, controlUrl, databaseUrl }, work)
  } finally {
    await withClient(serverUrl, (db) => dropAll(db, roles))
  }
}

type ServiceOptions = {
  readonly settings: Settings
  readonly controlUrl: string
  readonly databaseUrl: string
}

async function onService(
  folder: string,
  { settings, controlUrl, databaseUrl }: ServiceOptions,
  work: Work,
): Promise<void> {
  const sql = asRole(databaseUrl, new URL(databaseUrl).username)
  await makeTable(sql)
  const adminKey = secret()
  const program = await startProgram(folder, {
    ...settings,
    DATABASE_URL: controlUrl,
    SERVICE_CLIENTS__DEFAULT__URL: databaseUrl,
    SERVICE_KEY_12: adminKey,
  })
  try {
    const version = await withClient(databaseUrl, (db) => db.query('show server_version'))
    const asked = { name: 'bench', client_name: 'default', rights: ['*'] }
    const answer = await fetch(`${program.url}/admin/api-keys`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', [HEADER.adminKey]: adminKey },
      body: JSON.stringify(asked),
    })
    // The response schema IssuedKey.
    const { data } = (await answer.json()) as { data: { api_key: string } }
    const describes = `PostgreSQL ${version.rows[0].server_version}`
    await work({
      describes,
      url: program.url,
      headers: headersFor(data.api_key),
      databaseUrl,
      controlUrl,
      sql,
    })
  } finally {
    await program.end('SIGTERM')
  }
}

const headersFor = (key: string) => ({
  'content-type': 'application/json',
  apikey: key,
  [HEADER.client]: 'default',
})

const asRole =
  (databaseUrl: string, role: string): Fixture['sql'] =>
  (text) =>
    withClient(databaseUrl, async (db) => {
      await db.query(`set role ${pg.escapeIdentifier(role)}`)
      await db.query(text)
    })

async function makeTable(sql: Fixture['sql']): Promise<void> {
  await sql(TABLE)
  await sql('vacuum analyze bench_rows')
}

type Role = { readonly name: string; readonly password: string }

const newRole = (use: string): Role => ({
  name: `gatehouse_bench_${use}_${randomBytes(4).toString('hex')}`,
  password: secret(),
})

async function dropAll(db: pg.Client, roles: readonly Role[]): Promise<void> {
  const names = roles.map(({ name }) => pg.escapeIdentifier(name))
  for (const name of names) await db.query(`drop database if exists ${name} with (force)`)
  for (const name of names) await db.query(`drop role if exists ${name}`)
}

function urlOf(serverUrl: string, { name, password }: Role): string {
  return Object.assign(new URL(serverUrl), { username: name, password, pathname: `/${name}` }).href
}

const secret = (): string => randomBytes(16).toString('hex')
