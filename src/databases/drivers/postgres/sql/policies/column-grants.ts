import type { RunQuery } from '#databases/drivers/management.ts'
import { MARK_OF_SELF } from '#databases/drivers/postgres/sql/policies/mark.ts'

/**
 * Callers update a table with `insert_only_as_self` by rights to its columns, which a column that is added later does not have. Rights follow
 * a column to its new name.
 */
export const grantAddedColumns =
  (schema: string, table: string, added: readonly string[]) =>
  async (query: RunQuery): Promise<void> => {
    const values = [schema, table, added, MARK_OF_SELF]
    for (const { text } of await query<{ text: string }>(GRANTS_SQL, values)) await query(text, [])
  }

/** For the roles that may update another column. */
const GRANTS_SQL = `
select format('grant update (%s) on table %I.%I to %I', string_agg(quote_ident(a.attname), ', '), n.nspname, c.relname, r.rolname) as text
from pg_class c join pg_namespace n on n.oid = c.relnamespace
join pg_policy p on p.polrelid = c.oid and starts_with(obj_description(p.oid, 'pg_policy'), $4)
cross join unnest(p.polroles) bound(role) join pg_roles r on r.oid = bound.role
join pg_attribute a on a.attrelid = c.oid and a.attname = any ($3::text[]) and not a.attisdropped
where n.nspname = $1 and c.relname = $2 and has_any_column_privilege(r.oid, c.oid, 'update')
group by n.nspname, c.relname, r.rolname`
