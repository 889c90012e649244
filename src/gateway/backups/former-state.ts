import type pg from 'pg'

/** Of live rows: dumps have them without their rows, which say nothing to a reader of the restored ones. */
export const TABLES_OF_CHANGES = ['service_changes', 'service_changes_state', 'service_changes_mark']

/** The epoch of positions in live rows, and stored answers: they tell of rows that a restore has replaced. */
const TABLES = ['service_changes_state', 'service_idempotency']

/** A DELETE would call triggers and rules of the callers, which may prevent it. The tables are made again when they are needed. */
export async function dropFormerState(client: pg.Client): Promise<void> {
  const failures: unknown[] = []
  for (const table of TABLES) await dropTable(client, table).catch((error: unknown) => failures.push(error))
  if (failures.length > 0) throw failures.at(-1)
}

async function dropTable(client: pg.Client, table: string): Promise<void> {
  const { rows } = await client.query<{ exists: boolean }>(
    `select exists (select from pg_class where oid = to_regclass('public.${table}') and relkind in ('r', 'p'))`,
  )
  if (rows[0]?.exists === true) await client.query(`drop table public.${table} cascade`)
}
