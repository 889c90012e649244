import { Failure, withDetails } from '#kernel/errors.ts'
import type { Lifetime } from './lifetime.ts'
import type { RunRequest } from './run-request.ts'
import type { RunSink } from './sink.ts'
import type { RunSource } from './source.ts'
import type { Tally } from './tally.ts'

/** A run under way. Each of its parts keeps its own state. */
export type Run = {
  /** `pipeline_run_id`. */
  readonly id: string
  readonly request: RunRequest
  readonly lifetime: Lifetime
  readonly source: RunSource
  readonly tally: Tally
  readonly sink: RunSink
}

/** `cancelled`: the caller has left. Rows of complete batches are stored in each case. */
export type RunOutcome = 'completed' | 'too_many_errors' | 'cancelled'

export type RunResult = ReturnType<typeof resultOf>

/** The result of a run that did not fail. */
export function resultOf({ id, request, tally, sink }: Run, outcome: RunOutcome) {
  const { count, errors } = sink.refused()
  const sample = tally.sample()
  return {
    id,
    dryRun: request.dryRun,
    outcome,
    sourceClient: request.source.client,
    sinkClient: request.sink.client,
    rowsFetched: tally.fetched(),
    /** Rows that are committed in the sink. */
    rowsInserted: sink.inserted(),
    /** Candidates of a dry run, otherwise 0. */
    wouldInsert: request.dryRun ? tally.candidates() : 0,
    /** The first candidates, as JSON texts. */
    sample,
    sampleTruncated: tally.candidates() > sample.length,
    errors: errors.map(({ index, error, code }) => ({ index, error, code })),
    errorsTruncated: count > errors.length,
  }
}

/** The answer of a run, in pieces. Rows are as the database wrote them. */
export function resultJson(result: RunResult): Buffer[] {
  const facts = {
    ...(result.sampleTruncated && { data_truncated: true }),
    rows_fetched: result.rowsFetched,
    rows_inserted: result.rowsInserted,
    would_insert: result.wouldInsert,
    dry_run: result.dryRun,
    source_client: result.sourceClient,
    sink_client: result.sinkClient,
    errors: result.errors,
    ...(result.errorsTruncated && { errors_truncated: true }),
    ...(result.outcome === 'too_many_errors' && { stopped: result.outcome }),
    pipeline_run_id: result.id,
  }
  return [
    Buffer.from('{"data":['),
    Buffer.from(result.sample.join(',')),
    Buffer.from(`],${JSON.stringify(facts).slice(1)}`),
  ]
}

/** The failure of a run, with what the run has stored so far. */
export function failureOf({ id, lifetime, tally, sink }: Run, error: unknown): unknown {
  if (!(error instanceof Failure)) return error
  // The end of a run cancels its statement.
  const reason = error.code === 'statement_timeout' ? lifetime.stopReason(error) : undefined
  return withDetails(reason ?? error, {
    pipeline_run_id: id,
    rows_fetched: tally.fetched(),
    rows_inserted: sink.inserted(),
    rows_refused: sink.refused().count,
    ...(sink.inDoubt() > 0 && { rows_in_doubt: sink.inDoubt() }),
  })
}
