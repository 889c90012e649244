import type { RunResult } from './run-result.ts'

/** The answer of a run, in pieces. Rows are as the database wrote them. */
export function resultJson(result: RunResult): Buffer[] {
  const facts = {
    ...(result.dataTruncated && { data_truncated: true }),
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
    Buffer.from(result.data.join(',')),
    Buffer.from(`],${JSON.stringify(facts).slice(1)}`),
  ]
}
