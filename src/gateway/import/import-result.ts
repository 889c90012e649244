import type { Body } from '#databases/request/fields.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import type { Aliases, BadRow } from './row-batches.ts'

export type ImportFormat = 'csv' | 'jsonl'

/** An import, as a request or a command asks for it. */
export type ImportRequest = {
  readonly format: ImportFormat
  /** Between the cells of CSV. */
  readonly delimiter: string
  /** Members of the body of an insert beside its rows. */
  readonly target: Body
  readonly aliases: Aliases
  /** Each statement is rolled back. */
  readonly dryRun: boolean
  /** The bytes of the file. */
  readonly chunks: AsyncIterable<Buffer>
  /** The caller. Called again before every statement; it throws when the caller may not continue. */
  caller(): Promise<GatewayCaller>
  /** Why the import may not continue, if so. */
  end(): Error | undefined
  readonly onProgress?: (counts: ImportCounts) => void
}

export type ImportCounts = {
  /** Rows of the file so far. */
  readonly rowsRead: number
  /** Rows that are committed, or that would be. */
  readonly rowsInserted: number
  /** Rows that exist already, with on_conflict. */
  readonly rowsSkipped: number
  readonly rowsRefused: number
}

export type ImportResult = ImportCounts & {
  readonly dryRun: boolean
  readonly outcome: 'completed' | 'too_many_errors'
  /** The first refused rows, in the order of the file. */
  readonly errors: readonly BadRow[]
}

/** The members of an answer. */
export const resultOf = (result: ImportResult) => ({
  rows_read: result.rowsRead,
  rows_inserted: result.dryRun ? 0 : result.rowsInserted,
  would_insert: result.dryRun ? result.rowsInserted : 0,
  rows_skipped: result.rowsSkipped,
  rows_refused: result.rowsRefused,
  dry_run: result.dryRun,
  errors: [...result.errors],
  ...(result.errors.length < result.rowsRefused && { errors_truncated: true }),
  ...(result.outcome === 'too_many_errors' && { stopped: 'too_many_errors' as const }),
})
