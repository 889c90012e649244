import type { Presence } from '#databases/drivers/driver.ts'
import type { GatewayCaller } from '#gateway/caller/caller.ts'
import type { MergedPipeline } from '../merge.ts'

/** One row of the step log (gateway.md 9). */
export type RunStep = {
  readonly step: 'source' | 'transform' | 'sink'
  readonly client: string
  /** As `schema.table`; null for the transform, and for a simulation without a sink. */
  readonly table: string | null
  readonly statusCode: number
  readonly durationMs: number
  readonly errorMessage: string | null
  readonly details: Readonly<Record<string, unknown>>
}

/** A row that the sink has refused. `index` counts the candidates from 0. */
export type RefusedRow = { readonly index: number; readonly error: string; readonly code: string }

/** `cancelled`: the caller has left. Rows of complete batches are stored in each case. */
export type RunOutcome = 'completed' | 'too_many_errors' | 'cancelled'

/** The result of a run that did not fail. */
export type RunResult = {
  /** `pipeline_run_id`. */
  readonly id: string
  readonly requestId: string
  /** The pipeline of the file; undefined for an inline pipeline. */
  readonly pipeline: string | undefined
  readonly dryRun: boolean
  readonly outcome: RunOutcome
  readonly sourceClient: string
  readonly sinkClient: string
  readonly rowsFetched: number
  /** Rows that are committed in the sink. */
  readonly rowsInserted: number
  /** Candidates of a dry run, otherwise 0. */
  readonly wouldInsert: number
  /** The first candidates, as JSON texts. */
  readonly data: readonly string[]
  readonly dataTruncated: boolean
  readonly errors: readonly RefusedRow[]
  readonly errorsTruncated: boolean
  readonly steps: readonly RunStep[]
}

/** A run, as a request or a command asks for it. */
export type RunRequest = {
  readonly requestId: string
  /** The name of the pipeline of the file, if any, and its parts merged with those of the request. */
  readonly pipeline: string | undefined
  readonly parts: MergedPipeline
  readonly dryRun: boolean
  /** A simulation may lack the sink. */
  readonly needsSink: boolean
  readonly source: RunEnd
  readonly sink: RunEnd
  /** Whether the caller still waits for the result. */
  readonly presence: Presence
  /** Aborted when the service stops, or with the failure that ends the run. */
  readonly stopping?: AbortSignal
  /** Called after each batch. */
  readonly onProgress?: (progress: RunProgress) => void
}

/** One end of a run. */
export type RunEnd = {
  /** The name of its client. */
  readonly client: string
  /** The caller on that client. Called again before every batch; it throws when the caller may not continue. */
  caller(): Promise<GatewayCaller>
}

export type RunProgress = {
  readonly rowsFetched: number
  readonly rowsInserted: number
  readonly errors: number
}
