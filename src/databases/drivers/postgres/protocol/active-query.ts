import type pg from 'pg'
import type { Presence } from '#databases/drivers/driver.ts'
import type { MemoryBudget } from '#databases/drivers/memory-budget.ts'

/** What the connection hands the server's answer to. */
export type ActiveQuery = {
  row(data: Buffer, from: number, end: number, ahead: number): void
  /** The connection is free again, or gone. */
  settle(): void
  /** The gateway itself ends the statement, and its connection with it. */
  refuse(failure: Error): void
  parsed: boolean
  /** It holds as many rows as it may: the socket is to wait until they are taken. */
  readonly isFull: boolean
  /** The server sets it no time: the pool ends it when it is late. */
  readonly isLong?: boolean
  /** Its reader is slow: the rows are read to their end into this memory, so that the connection is free. */
  readAhead?(budget: MemoryBudget): void
  /** The server tells the types of the parameters. */
  describe?(types: readonly number[]): void
}

/** One that may be sent while others are still answered. */
export type PipelinedQuery = ActiveQuery &
  pg.Submittable & {
    readonly presence: Presence | undefined
    send(): void
    /** It is to be asked elsewhere, through no fault of its own. */
    displace(): void
  }
