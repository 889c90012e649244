import type { RunQuery } from '#databases/drivers/management.ts'
import { existingTable } from '#databases/drivers/postgres/sql/ddl/names.ts'
import { fail } from '#databases/failures.ts'
import type { Table } from '#databases/plan/catalogue.ts'

/** Marks an `id` that the service added (gateway.md 10). */
export const MANAGED_ID_COMMENT = 'Added by the gateway'

/** Refuses a change of these columns if the service added one of them. The lock keeps the answer true until the end of the transaction. */
export const requireOwnColumns =
  (table: Table, columns: readonly string[]) =>
  async (query: RunQuery): Promise<void> => {
    const name = existingTable(table)
    await query(`lock table ${name} in access exclusive mode`, [])
    const [managed] = await query<{ name: string }>(MANAGED_SQL, [
      table.schema,
      table.name,
      columns,
      MANAGED_ID_COMMENT,
    ])
    if (managed === undefined) return
    throw fail('reserved_column', {
      hint: 'It is the primary key of a table that was created without one.',
      details: { schema_name: table.schema, table_name: table.name, column: managed.name },
    })
  }

const MANAGED_SQL = `
select a.attname as name from pg_class c
join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and not a.attisdropped and a.attname = any ($3::text[])
where n.nspname = $1 and c.relname = $2 and col_description(c.oid, a.attnum) = $4`
