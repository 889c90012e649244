import type { Presence } from '#databases/drivers/driver.ts'

export type RunOptions = {
  /** Runs first, in the same transaction and round trip: nothing of the statement happens when it fails. */
  readonly first?: FirstStatement | undefined
  /** Under which name to prepare; empty: not kept. */
  readonly name: string
  /** Names of the members, by position; undefined: the database's own. */
  readonly members: readonly string[] | undefined
  readonly stripNulls: boolean
  /** Rows above it are left out, and the writer says so. */
  readonly limit: number
  /** Settle `ready` when this many bytes wait, and pause until they are taken. Infinity: collect everything. */
  readonly highWater: number
  /** Bytes of rows that may wait to be taken, an answer that is collected: one more is `result_too_large`. */
  readonly most?: number | undefined
  /** Which columns are relations, by position, and how many rows there may be with theirs. */
  readonly relations?: { readonly at: ReadonlySet<number>; readonly rows: number } | undefined
  /** It is committed when its rows are here, and not when they are too many. */
  readonly commitsLast?: boolean
  /** The server sets it no time: the pool ends it when it is late. */
  readonly isLong?: boolean
  /** Who waits for it, where it shares the connection with others. */
  readonly presence?: Presence | undefined
}

export type Statement = { readonly text: string; readonly values: readonly (string | null)[] }
export type FirstStatement = Statement & { readonly name: string }
