import { sql } from 'kysely'
import type { Db } from './connect.ts'

type Expired = {
  /** With its schema. */
  readonly table: string
  readonly key: string
  /** The column that says until when a row counts. */
  readonly until?: string
  readonly before: Date | string
  readonly batch: number
}

/**
 * Deletes at most `batch` rows that were over before; returns their number. One that is renewed meanwhile has a lock, and stays. The sub-query
 * runs once, also by a plan that was kept from when the table was small: it passes over what the statement has deleted, so with `in` it may run
 * for each row, and all rows would be one batch.
 */
export async function deleteExpired(
  db: Db,
  { table, key, until = 'expires_at', before, batch }: Expired,
): Promise<number> {
  const [rows, id, end] = [sql.table(table), sql.ref(key), sql.ref(until)]
  const { numAffectedRows } = await sql`
    delete from ${rows} where ${id} = any (array(
      select ${id} from ${rows} where ${end} <= ${before} limit ${batch} for update skip locked))`.execute(db)
  return Number(numAffectedRows ?? 0n)
}
