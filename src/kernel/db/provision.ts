import pg from 'pg'
import { scramVerifier } from './scram.ts'
import { systemSession } from './session.ts'

export type Provision = {
  readonly roles: readonly { readonly name: string; readonly password: string }[]
  /** Each opened by its owner and superusers, and nobody else. */
  readonly databases: readonly { readonly name: string; readonly owner: string }[]
}

/**
 * Makes the roles and databases that are missing, as a superuser or as a role with CREATEROLE and CREATEDB.
 * Passwords are set each time: an ALTER ROLE is one small write, while finding out whether one still holds takes a
 * login per role and leaves a line in the server's log.
 */
export async function provision(url: string, wanted: Provision): Promise<void> {
  const client = new pg.Client({ ...systemSession(url) })
  try {
    await client.connect()
    // Until the connection ends. CREATE DATABASE runs in no transaction, so one lock holds for all of it.
    await client.query(`select pg_advisory_lock(hashtextextended('gatehouse provision', 0))`)
    for (const { name, password } of wanted.roles) await ensureRole(client, name, password)
    await joinRoles(client, [
      ...wanted.roles.map(({ name }) => name),
      ...wanted.databases.map(({ owner }) => owner),
    ])
    for (const { name, owner } of wanted.databases) await ensureDatabase(client, name, owner)
  } finally {
    await client.end()
  }
}

async function ensureRole(client: pg.Client, name: string, password: string): Promise<void> {
  const { rows } = await client.query<{ rolsuper: boolean }>(
    'select rolsuper from pg_roles where rolname = $1',
    [name],
  )
  if (rows[0]?.rolsuper) throw new Error(`The database role ${name} exists already and is a superuser.`)
  const verifier = pg.escapeLiteral(await scramVerifier(password))
  await client.query(
    rows[0]
      ? `alter role ${id(name)} login password ${verifier}`
      : `create role ${id(name)} login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password ${verifier}`,
  )
}

/**
 * Whoever gives a database to a role must be able to become it, which only superusers are from the start. SET
 * alone, where PostgreSQL knows it (16), does not let them into the database themselves.
 */
async function joinRoles(client: pg.Client, roles: readonly string[]): Promise<void> {
  const { rows } = await client.query<{ rolname: string; options: string }>(
    `select rolname, case when current_setting('server_version_num')::int >= 160000
                          then 'with inherit false, set true' else '' end as options
       from pg_roles where rolname = current_user and not rolsuper`,
  )
  for (const { rolname, options } of rows) {
    for (const role of new Set(roles).difference(new Set([rolname]))) {
      await client.query(`grant ${id(role)} to current_user ${options}`)
    }
  }
}

async function ensureDatabase(client: pg.Client, name: string, owner: string): Promise<void> {
  const { rows } = await client.query<{ owner: string }>(
    'select pg_get_userbyid(datdba) as owner from pg_database where datname = $1',
    [name],
  )
  if (rows[0] && rows[0].owner !== owner) {
    throw new Error(`The database ${name} exists already and belongs to ${rows[0].owner}, not to ${owner}.`)
  }
  // template0: nobody can be connected to it, and what an operator put into template1 is not ours.
  if (!rows[0]) {
    await client.query(`create database ${id(name)} owner ${id(owner)} template template0 encoding 'UTF8'`)
  }
  // As the owner, whose grant it is.
  await client.query(
    `begin; set local role ${id(owner)}; revoke all on database ${id(name)} from public; commit`,
  )
}

const id = pg.escapeIdentifier
