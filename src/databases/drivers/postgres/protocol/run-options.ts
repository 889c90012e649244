import type { Presence } from '#databases/drivers/driver.ts'
import type { Parameter } from '#databases/drivers/postgres/sql/sql-builder.ts'

export type RunOptions = {
  /** Runs first, in the same transaction and round trip: when it fails, the statement does not run. */
  readonly first?: FirstStatement | undefined
  /** The name of the prepared statement; empty: unnamed. */
  readonly name: string
  /** Names of the members, by position; undefined: the column names of the database. */
  readonly members: readonly string[] | undefined
  readonly stripNulls: boolean
  /** A JSON null is written with a tab before it. */
  readonly marksJsonNull?: boolean
  /** Rows are written as lines of CSV instead of JSON. */
  readonly isCsv?: boolean
  /** Rows above the limit are left out, and `RowWriter.more` is set. */
  readonly limit: number
  /** Bytes at which `ready` settles and the connection pauses until they are taken. Infinity: collect everything. */
  readonly highWater: number
  /** The most bytes of a collected answer; more are `result_too_large`. */
  readonly maxBytes?: number | undefined
  /** Positions of columns that are relations, and the most rows including theirs; `perRow`: the most in one row. */
  readonly relations?:
    | { readonly at: ReadonlySet<number>; readonly rows: number; readonly perRow?: boolean }
    | undefined
  /** Commits only when all rows have arrived and are not too many. */
  readonly commitsLast?: boolean
  /** The server has no timeout for it: the pool ends it when it is late. */
  readonly isLong?: boolean
  /** The caller that waits for it, on a shared connection. */
  readonly presence?: Presence | undefined
}

export type Statement = { readonly text: string; readonly values: readonly Parameter[] }
export type FirstStatement = Statement & { readonly name: string }
