import { fail } from '#gateway/errors.ts'
import { Failure, withDetails } from '#kernel/errors.ts'
import type { EventData } from '#kernel/events.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { BulkInsert } from './bulk-insert.ts'
import type { Shape } from './candidates.ts'
import { type PreparedRun, tableOf } from './prepare-run.ts'
import type { RunOutcome, RunRequest, RunResult, RunStep } from './run-result.ts'
import type { Sample } from './sample.ts'
import type { Times } from './times.ts'

export type Run = PreparedRun & {
  readonly id: string
  readonly kernel: Kernel
  readonly request: RunRequest
  readonly bulk: BulkInsert
  readonly sample: Sample
  readonly times: Times
  /** In the time of performance.now(). */
  readonly deadline: number
  fetched: number
  candidates: number
  /** Rows of a statement whose outcome is unknown. */
  inDoubt: number
}

export function resultOf(run: Run, outcome: RunOutcome): RunResult {
  const { id, request, bulk, sample } = run
  const { count, errors } = bulk.refused()
  return {
    id,
    requestId: request.requestId,
    pipeline: request.pipeline,
    dryRun: request.dryRun,
    outcome,
    sourceClient: request.source.client,
    sinkClient: request.sink.client,
    rowsFetched: run.fetched,
    rowsInserted: bulk.inserted(),
    wouldInsert: request.dryRun ? run.candidates : 0,
    data: sample.texts(),
    dataTruncated: run.candidates > sample.texts().length,
    errors,
    errorsTruncated: count > errors.length,
    steps: stepsOf(run, outcome),
  }
}

function stepsOf(run: Run, outcome: RunOutcome): readonly RunStep[] {
  const { request, source, shape, sinkTable, bulk, times } = run
  const { count } = bulk.refused()
  const status =
    outcome === 'cancelled'
      ? { statusCode: 499, errorMessage: 'cancelled' }
      : { statusCode: 200, errorMessage: null }
  const dry = request.dryRun ? { dry_run: true } : {}
  return [
    {
      step: 'source',
      client: request.source.client,
      table: tableOf(source.plan),
      ...status,
      durationMs: times.of('source'),
      details: { ...dry, rows_fetched: run.fetched },
    },
    {
      step: 'transform',
      client: request.source.client,
      table: null,
      ...status,
      durationMs: times.rest(),
      details: { ...dry, candidates: run.candidates, ...groupingDetails(shape) },
    },
    {
      step: 'sink',
      client: request.sink.client,
      table: sinkTable,
      ...status,
      durationMs: times.of('sink'),
      details: { ...dry, rows_inserted: bulk.inserted(), rows_refused: count, outcome },
    },
  ]
}

const groupingDetails = ({ grouping }: Shape) =>
  grouping && {
    group_by: grouping.groupBy,
    aggregation_column: grouping.column,
    aggregation_strategy: grouping.strategy,
  }

/** The same failure with what the run has stored so far. */
export function withProgress(run: Run, error: unknown): unknown {
  if (!(error instanceof Failure)) return error
  // The end of a run cancels its statement.
  const end = error.code === 'statement_timeout' ? endOf(run, error) : undefined
  const { count } = run.bulk.refused()
  const progress = {
    pipeline_run_id: run.id,
    rows_fetched: run.fetched,
    rows_inserted: run.bulk.inserted(),
    rows_refused: count,
    ...(run.inDoubt > 0 && { rows_in_doubt: run.inDoubt }),
  }
  return withDetails(end ?? error, progress)
}

export const eventOf = (
  { request, source, sinkTable, bulk }: Run,
  result: RunResult,
): EventData['pipeline_completed'] => ({
  client: request.source.client,
  request_id: request.requestId,
  pipeline_run_id: result.id,
  pipeline_name: request.pipeline ?? null,
  source_table: tableOf(source.plan),
  sink_client: request.sink.client,
  sink_table: sinkTable ?? '',
  affected_rows: result.rowsInserted,
  failed_rows: bulk.refused().count,
  duration_ms: result.steps.reduce((sum, { durationMs }) => sum + durationMs, 0),
})

const NOT_STOPPED = { aborted: false, reason: undefined }

/** Why a run may not continue, if so. */
export function endOf({ kernel, request, deadline }: Run, cause?: Failure): Failure | undefined {
  const { aborted, reason }: Pick<AbortSignal, 'aborted' | 'reason'> = request.stopping ?? NOT_STOPPED
  if (aborted && reason instanceof Failure) return reason
  if (aborted) return fail('pipeline_stopped', { hint: 'Run it again when the service runs.', cause })
  if (performance.now() <= deadline) return undefined
  const seconds = kernel.config.gateway.pipelines.timeout / 1_000
  const hint = `A run takes at most ${seconds} seconds (gateway.pipelines.timeout).`
  return fail('pipeline_timeout', { hint, cause })
}
