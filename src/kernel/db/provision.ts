import pg from 'pg'
import { takeOver } from './database-owner.ts'
import { removeSettings } from './given-settings.ts'
import { onConnection } from './guarded-client.ts'
import { scramVerifier } from './scram.ts'
import { takeSessionLock, type Wait } from './session-lock.ts'

export type Provision = {
  readonly roles: readonly Role[]
  readonly databases: readonly Database[]
  /** `to` may SET ROLE to `role`, without inheriting its rights. */
  readonly grants?: readonly { readonly role: string; readonly to: string }[]
  /** The installation that they belong to. An existing role or database with another mark, or without one, is refused. */
  readonly installation?: string
  /** Whether existing roles keep their passwords, unless `url` shows that they have others. */
  readonly keepsPasswords?: boolean
}

export type Role = {
  readonly name: string
  /** A role without a password is for SET ROLE only. */
  readonly password?: string
  /** Logs in with the password. */
  readonly url?: string
}

/** Only the owner, `user` and superusers may connect to it. */
type Database = {
  readonly name: string
  readonly owner: string
  /** May create everything in it, but alter nothing of the database itself. The URL logs in as this role. */
  readonly user?: { readonly name: string; readonly url: string }
}

const LOCK = { name: 'provisioning lock', key: `hashtextextended('gatehouse provision', 0)` }

/**
 * Creates missing roles and databases, as a superuser or as a role with CREATEROLE and CREATEDB. Undoes what an existing role has changed of
 * itself, its settings and its password, and returns a sentence for each.
 */
export async function provision(url: string, wanted: Provision, wait: Wait = {}): Promise<readonly string[]> {
  return onConnection({ url, name: 'provision', deadline: PATIENCE }, async (client) => {
    // Held until the connection ends: CREATE DATABASE cannot run in a transaction, so a transaction's lock would not do.
    await takeSessionLock(client, LOCK, wait)
    const existing = []
    for (const role of wanted.roles) if (await ensureRole(client, role, wanted)) existing.push(role)
    await joinRoles(client, [
      ...wanted.roles.map(({ name }) => name),
      ...wanted.databases.map(({ owner }) => owner),
    ])
    for (const { role, to } of wanted.grants ?? []) await letBecome(client, role, to)
    const repairs = [
      ...(await removeSettings(client, { roles: existing.map(({ name }) => name), databases: [] })),
      ...(await repairPasswords(client, existing)),
    ]
    for (const database of wanted.databases) repairs.push(...(await ensureDatabase(client, database, wanted)))
    return repairs
  })
}

/** Longest time of one step, milliseconds: creating a database copies files. */
const PATIENCE = 120_000

/** The COMMENT on every role and database that an installation has created. */
export const markOf = (installation: string): string => `gatehouse installation ${installation}`

type ExistingRole = { readonly rolsuper: boolean; readonly mark: string | null }

/** Creates, marks and sets the password in one transaction, so that no incomplete role remains. Returns whether the role was there. */
async function ensureRole(
  client: pg.Client,
  { name, password }: Role,
  { installation, keepsPasswords = false }: Provision,
): Promise<boolean> {
  const { rows } = await client.query<ExistingRole>(
    `select rolsuper, shobj_description(oid, 'pg_authid') as mark from pg_roles where rolname = $1`,
    [name],
  )
  const [found] = rows
  if (found?.rolsuper) throw new Error(`The database role ${name} exists already and is a superuser.`)
  if (found && installation !== undefined) requireMark('role', name, found.mark, installation)
  if (found && (keepsPasswords || password === undefined)) return true
  const login = password === undefined ? 'nologin' : await loginWith(password)
  if (found) {
    await client.query(`alter role ${id(name)} ${login}`)
    return true
  }
  await client.query(
    `begin;
     create role ${id(name)} nosuperuser nocreatedb nocreaterole noreplication nobypassrls ${login};
     ${installation === undefined ? '' : `comment on role ${id(name)} is ${pg.escapeLiteral(markOf(installation))};`}
     commit`,
  )
  return false
}

const loginWith = async (password: string): Promise<string> =>
  `login password ${pg.escapeLiteral(await scramVerifier(password))}`

/** A role may have given itself another password (`alter role … password`). */
async function repairPasswords(client: pg.Client, roles: readonly Role[]): Promise<readonly string[]> {
  const refused = await Promise.all(roles.map(({ url }) => url !== undefined && isRefused(url)))
  const wrong = roles.filter((_, index) => refused[index])
  for (const { name, password = '' } of wrong)
    await client.query(`alter role ${id(name)} ${await loginWith(password)}`)
  return wrong.map(({ name }) => `The password of role ${name} had been changed, and was set again`)
}

const WRONG_PASSWORD = '28P01'

/** Whether the password is wrong. Every other failure, such as a database that is still to be created, comes after the password's check. */
async function isRefused(url: string): Promise<boolean> {
  try {
    await onConnection({ url, name: 'provision' }, async () => {})
    return false
  } catch (error) {
    return error instanceof pg.DatabaseError && error.code === WRONG_PASSWORD
  }
}

function requireMark(
  kind: 'role' | 'database',
  name: string,
  mark: string | null,
  installation: string,
): void {
  const ours = markOf(installation)
  if (mark === ours) return
  throw new Error(
    mark?.startsWith(markOf('')) === true
      ? `The ${kind} ${name} belongs to another Gatehouse (${mark}): give this one a control database of another name.`
      : `The ${kind} ${name} exists already and was not created by this installation: give the control database another name, ` +
          `or, if it was restored from a backup of this installation, mark it: comment on ${kind} ${id(name)} is '${ours}'`,
  )
}

/**
 * To give a database to a role, one must be able to SET ROLE to it, which superusers always are. From PostgreSQL 16 on the grant has the
 * SET option alone, which gives no access to the database.
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

async function letBecome(client: pg.Client, role: string, to: string): Promise<void> {
  const { rows } = await client.query<{ is_granted: boolean; is_new: boolean }>(
    `select current_setting('server_version_num')::int >= 160000 as is_new, exists (
       select from pg_auth_members where roleid = $1::regrole and member = $2::regrole
     ) as is_granted`,
    [id(role), id(to)],
  )
  const [found] = rows
  if (found?.is_granted) return
  await client.query(`grant ${id(role)} to ${id(to)} ${found?.is_new ? 'with inherit false, set true' : ''}`)
}

async function ensureDatabase(
  client: pg.Client,
  database: Database,
  { installation }: Provision,
): Promise<readonly string[]> {
  const { name, owner, user } = database
  const { rows } = await client.query<{ owner: string; mark: string | null }>(
    `select pg_get_userbyid(datdba) as owner, shobj_description(oid, 'pg_database') as mark
       from pg_database where datname = $1`,
    [name],
  )
  const [found] = rows
  if (found && found.owner !== owner && found.owner !== user?.name) {
    throw new Error(`The database ${name} exists already and belongs to ${found.owner}, not to ${owner}.`)
  }
  // Without a mark, a start ended between the creation and the mark. The owner has one, and has been checked.
  if (found && found.mark !== null && installation !== undefined) {
    requireMark('database', name, found.mark, installation)
  }
  const first = user?.name ?? owner
  // template0 has no connections that could block, and no objects that an operator has added.
  if (!found) {
    await client.query(`create database ${id(name)} owner ${id(first)} template template0 encoding 'UTF8'`)
  }
  const repairs =
    user === undefined || found?.owner === owner ? [] : await takeOver(client, { name, owner, user })
  const mark =
    installation === undefined || found?.mark != null
      ? ''
      : `comment on database ${id(name)} is ${pg.escapeLiteral(markOf(installation))};`
  const rights =
    user === undefined ? '' : `grant connect, create, temporary on database ${id(name)} to ${id(user.name)};`
  // As the owner, because the grant to public is the owner's.
  await client.query(
    `begin; set local role ${id(owner)}; revoke all on database ${id(name)} from public; ${rights} ${mark} commit`,
  )
  return repairs
}

const id = pg.escapeIdentifier
