import { type Expression, sql } from 'kysely'
import type { Db } from './connect.ts'

/** Rows are counted up to this number, and estimated beyond it (decision 71). */
export const COUNTED = 10_000

export const COUNT_MODES = ['estimated', 'exact'] as const
export type CountMode = (typeof COUNT_MODES)[number]

export type Total = {
  readonly total: number
  readonly totalEstimated: boolean
}

/** The number of rows of a subquery, which may have another form to estimate them by. `exact` reads all of them. */
export async function countRows(
  db: Db,
  rows: Expression<unknown>,
  mode: CountMode = 'estimated',
  estimated = rows,
): Promise<Total> {
  const limit = mode === 'exact' ? sql`` : sql`limit ${sql.lit(COUNTED + 1)}`
  const counted = await sql<{ count: string }>`
    select count(*) from (select from ${rows} as fitting ${limit}) as counted`.execute(db)
  const total = Number(counted.rows[0]?.count)
  if (mode === 'exact' || total <= COUNTED) return { total, totalEstimated: false }
  return { total: Math.max(total, await estimateRows(db, estimated)), totalEstimated: true }
}

type Explained = { readonly 'QUERY PLAN': readonly [{ readonly Plan: { readonly 'Plan Rows': number } }] }

/** By the statistics of the planner, for the values of the conditions. */
async function estimateRows(db: Db, rows: Expression<unknown>): Promise<number> {
  const explained = await sql<Explained>`explain (format json) select from ${rows} as fitting`.execute(db)
  return explained.rows[0]?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0
}

/**
 * The total as corrected by a page, which was read with one more row than its limit: it never ends before the rows do, and the last page
 * makes it exact. `found` is the number of rows with that one.
 */
export function totalBeside(
  { total, totalEstimated }: Total,
  { limit, offset }: { readonly limit: number; readonly offset: number },
  found: number,
): Total {
  if (!totalEstimated) return { total, totalEstimated }
  if (found > limit) return { total: Math.max(total, offset + found), totalEstimated }
  if (found > 0 || offset === 0) return { total: offset + found, totalEstimated: false }
  return { total: Math.min(total, offset), totalEstimated }
}
