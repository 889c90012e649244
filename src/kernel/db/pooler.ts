import pg from 'pg'
import { secureRandom } from '../random.ts'
import { connected, GuardedClient } from './guarded-client.ts'
import type { PoolerAddress } from './session-settings.ts'
import { UnusableDatabase } from './unusable-database.ts'

/** Refuses a pooler, which is detected by its own process ids. */
export async function expectNoPooler(client: pg.Client): Promise<void> {
  if (await isServer(client)) return
  throw new UnusableDatabase(
    'The control database is reached through a pooler, and LISTEN, locks and migrations need a session of their own: set ' +
      "database.direct_url to PostgreSQL's own address.",
  )
}

/** Whether the session is that of the connection: a pooler has process ids of its own. */
export async function isServer(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ pid: number }>('select pg_catalog.pg_backend_pid() as pid')
  // Not in pg's types: the process id that the server sent at the start.
  return rows[0]?.pid === (client as pg.Client & { readonly processID: number }).processID
}

/** The longest statement time of all pools, milliseconds; the deadlines of this process enforce shorter ones. */
const STATEMENT_TIMEOUT = '30000'

/**
 * Sets on the role, for this database, what our sessions set in their startup message: a pooler accepts no settings there. Settings that
 * fit already are not changed.
 */
export async function settleRole(client: pg.Client): Promise<void> {
  const wanted = { search_path: 'pg_catalog, pg_temp', statement_timeout: STATEMENT_TIMEOUT }
  const { rows } = await client.query<{ database: string; settings: readonly string[] | null }>(
    `select current_database()::text as database, (
       select s.setconfig from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase
       where d.datname = current_database() and s.setrole = current_user::regrole
     ) as settings`,
  )
  for (const [name, value] of Object.entries(wanted)) {
    if (rows[0]?.settings?.includes(`${name}=${value}`)) continue
    const database = pg.escapeIdentifier(rows[0]?.database ?? '')
    await client.query(`alter role current_user in database ${database} set ${name} = ${value}`)
  }
}

/** Checks that the pooler leads to the same installation, and whether it supports prepared statements. */
export async function lookThroughPooler(url: string, installation: string): Promise<PoolerAddress> {
  const client = new GuardedClient({
    connectionString: url,
    application_name: 'gatehouse start',
    deadline: 10_000,
  })
  return connected(client, async () => {
    const { rows } = await client.query<{ id: string }>('select id from service.installation')
    if (rows[0]?.id !== installation)
      throw new UnusableDatabase('database.url and database.direct_url lead to different databases.')
    return { url, prepares: (await isServer(client)) || (await keepsStatements(client)) }
  })
}

/** Whether the pooler separates the prepared statements of its clients: then it gives them its own names. */
export async function keepsStatements(client: pg.Client): Promise<boolean> {
  const name = `gatehouse_${secureRandom(8).toString('hex')}`
  await client.query('begin')
  await client.query({ name, text: 'select 1' })
  const { rows } = await client.query<{ name: string }>(
    'select s.name from pg_catalog.pg_prepared_statements as s',
  )
  const isOurs = rows.some((row) => row.name === name)
  await client.query(isOurs ? `deallocate ${name}; commit` : 'commit')
  return !isOurs
}
