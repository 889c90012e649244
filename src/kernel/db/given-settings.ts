import pg from 'pg'

/** The sessions whose settings are removed. */
type Subjects = { readonly roles: readonly string[]; readonly databases: readonly string[] }

type Row = {
  readonly role: string | null
  readonly database: string | null
  readonly settings: readonly string[]
}

/**
 * Removes the settings with which sessions of these roles and databases begin (`alter role … set`, `alter database … set`). A role may give
 * them to itself, and an owner to its database; `role`, `local_preload_libraries` or `default_transaction_read_only` then change or prevent
 * the sessions of others. Returns a sentence for each subject.
 */
export async function removeSettings(client: pg.ClientBase, given: Subjects): Promise<readonly string[]> {
  const before = await settingsOf(client, given)
  for (const row of before) await client.query(`alter ${subjectOf(row, pg.escapeIdentifier)} reset all`)
  // A role that is no superuser removes only settings that it could have made.
  const left = new Map(
    before.length === 0 ? [] : (await settingsOf(client, given)).map((row) => [subjectOf(row), row.settings]),
  )
  return before.flatMap((row) => {
    const removed = row.settings.filter((name) => left.get(subjectOf(row))?.includes(name) !== true)
    return removed.length === 0
      ? []
      : [`The settings of ${subjectOf(row)} were removed: ${removed.join(', ')}`]
  })
}

async function settingsOf(client: pg.ClientBase, { roles, databases }: Subjects): Promise<readonly Row[]> {
  const { rows } = await client.query<Row>(
    `select r.rolname as role, d.datname as database,
            array(select split_part(one, '=', 1) from unnest(s.setconfig) as one) as settings
       from pg_db_role_setting s left join pg_roles r on r.oid = s.setrole left join pg_database d on d.oid = s.setdatabase
      where r.rolname = any ($1) or (s.setrole = 0 and d.datname = any ($2))`,
    [roles, databases],
  )
  return rows
}

function subjectOf({ role, database }: Row, quote: (name: string) => string = String): string {
  if (role === null) return `database ${quote(database ?? '')}`
  return `role ${quote(role)}${database === null ? '' : ` in database ${quote(database)}`}`
}
