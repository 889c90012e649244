import pg from 'pg'
import { secureRandom } from '../random.ts'
import { connected, GuardedClient } from './guarded-client.ts'
import type { PoolerAddress } from './session-settings.ts'
import { UnusableDatabase } from './unusable-database.ts'

/** A pooler gives its clients process ids of its own. */
export async function expectNoPooler(client: pg.Client): Promise<void> {
  if (await isServer(client)) return
  throw new UnusableDatabase(
    'The control database is reached through a pooler, and LISTEN, locks and migrations need a session of their own: set ' +
      "database.direct_url to PostgreSQL's own address.",
  )
}

async function isServer(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ pid: number }>('select pg_catalog.pg_backend_pid() as pid')
  // Not in pg's types: what was told when the connection began.
  return rows[0]?.pid === (client as pg.Client & { readonly processID: number }).processID
}

/** The longest that any path to the control database allows, milliseconds; shorter ones end by deadlines of this process. */
const STATEMENT_TIMEOUT = '30000'

/**
 * What a session of ours says when it begins, for this role in this database: a pooler takes no settings. Only where they differ, so
 * that a start changes nothing the second time.
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

/** Looks through it: it has to lead to the same installation. */
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

/** A pooler that keeps statements of its clients apart gives them names of its own. */
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
