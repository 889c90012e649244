import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Kernel } from '#kernel/kernel.ts'
import type { Renewal } from '../caller/renewal.ts'
import type { AskedTable, LiveTable } from './live-table.ts'
import type { Pages } from './pages.ts'
import type { Reader } from './reader.ts'

export type AskedStream = {
  readonly tables: readonly AskedTable[]
  readonly snapshot: boolean
  /** The public route that a caller without a key came by. */
  readonly route?: string
}

/** Tables, and the reader's version from before they were opened. */
export type Opened = { readonly tables: readonly LiveTable[]; readonly version: number }

export type StreamParts = {
  readonly kernel: Kernel
  readonly reader: Reader
  readonly renewal: Renewal
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly asked: AskedStream
  /** The id of the last event that the reader has had. */
  readonly lastId: string | undefined
  /** Of the ticket that it was opened by. */
  readonly proof: string | undefined
  /** Counts what may have changed for callers. */
  readonly changes: () => number
  /** Pages of streams whose readers may come back. */
  readonly pages: Pages
  /** Keeps the reader going until the returned function is called. */
  readonly retain: () => () => void
  /** It is over. */
  readonly closed: () => void
}
