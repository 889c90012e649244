import pg from 'pg'
import { removeSettings } from './given-settings.ts'
import { onConnection } from './guarded-client.ts'

type Handover = {
  readonly name: string
  readonly owner: string
  /** The former owner, and the URL with which it logs in. */
  readonly user: { readonly name: string; readonly url: string }
}

/**
 * Gives a database of its user to another owner, with whom callers cannot alter it: its settings would also hold for superusers. What the
 * user may have altered is undone; the return value says which settings. Nothing runs in the database with more rights than the user's,
 * since functions and operators there are the user's too.
 */
export async function takeOver(
  client: pg.Client,
  { name, owner, user }: Handover,
): Promise<readonly string[]> {
  await client.query(`set role ${id(user.name)}`)
  const repairs = await removeSettings(client, { roles: [], databases: [name] })
  await client.query(
    `alter database ${id(name)} with allow_connections true connection limit -1 is_template false;
     grant all on database ${id(name)} to ${id(user.name)};
     reset role`,
  )
  await onConnection({ url: user.url, name: 'provision' }, keepPublic)
  const inherit = await inheritance(client, user.name)
  await client.query(
    `begin; ${inherit('true')} alter database ${id(name)} owner to ${id(owner)}; ${inherit('false')} commit`,
  )
  return repairs
}

/** From PostgreSQL 15 on, schema public belongs to whoever owns the database. */
async function keepPublic(client: pg.Client): Promise<void> {
  const { rowCount } = await client.query(
    `select from pg_namespace where nspname = 'public' and pg_get_userbyid(nspowner) = 'pg_database_owner'`,
  )
  if (rowCount === 1) await client.query('alter schema public owner to current_user')
}

/** From PostgreSQL 16 on, who gives a database away must inherit the rights of its owner. */
async function inheritance(client: pg.Client, role: string): Promise<(does: string) => string> {
  const { rowCount } = await client.query(
    `select from pg_roles where rolname = current_user and not rolsuper
        and current_setting('server_version_num')::int >= 160000`,
  )
  return (does) => (rowCount === 1 ? `grant ${id(role)} to current_user with inherit ${does};` : '')
}

const id = pg.escapeIdentifier
