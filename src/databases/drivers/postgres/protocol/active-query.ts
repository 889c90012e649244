import type pg from 'pg'
import type { Presence } from '#databases/drivers/driver.ts'
import type { MemoryBudget } from '#databases/drivers/memory-budget.ts'

/** The query that receives the server's messages. */
export type ActiveQuery = {
  row(data: Buffer, from: number, end: number, ahead: number): void
  /** Called when the connection is free again or lost. */
  settle(): void
  /** Ends the statement and its connection with a failure of the gateway. */
  refuse(failure: Error): void
  parsed: boolean
  /** It has buffered as many rows as allowed: the socket pauses until they are taken. */
  readonly isFull: boolean
  /** The server has no timeout for it: the pool ends it when it is late. */
  readonly isLong?: boolean
  /** For a slow reader: reads all rows into memory of this budget to free the connection. */
  readAhead?(budget: MemoryBudget): void
  /** Gets the types of the parameters from the server. */
  describe?(types: readonly number[]): void
}

/** A query that may be sent before earlier ones are answered. */
export type PipelinedQuery = ActiveQuery &
  pg.Submittable & {
    readonly presence: Presence | undefined
    send(): void
    /** Must run on another connection, through no fault of its own. */
    displace(): void
  }
