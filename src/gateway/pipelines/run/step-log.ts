import { createLoggingPool } from '#gateway/logging/logging-pool.ts'
import { loggedRequestId } from '#kernel/audit/record-act.ts'
import type { LoggedStep } from '#kernel/jobs.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Shape } from './candidates.ts'
import type { Run, RunOutcome } from './run-result.ts'

/**
 * Enqueues the rows of a run as one job of the durable queue, before the result is answered. A failure is counted and logged: the rows of the
 * sink are stored already, so the run has succeeded.
 */
export async function enqueueSteps(kernel: Kernel, { id }: Run, steps: LoggedStep[]): Promise<void> {
  try {
    await kernel.jobs.enqueue(kernel.db, 'log-pipeline-steps', { steps })
  } catch (error) {
    kernel.metrics.count('gatehouse_pipeline_log_failures_total')
    kernel.log.error(
      { event: 'pipeline_log_lost', pipeline_run_id: id, error },
      'the steps of a pipeline run could not be enqueued for the log',
    )
  }
}

/** The rows of a run that did not fail. */
export function stepsOf({ now }: Kernel, run: Run, outcome: RunOutcome): LoggedStep[] {
  const { id, request, lifetime, source, sink, tally } = run
  const durations = lifetime.durations()
  const at = now().toISOString()
  const stepOf = (step: LoggedStep['step'], client: string, table: string | null, details: object) => ({
    created_at: at,
    pipeline_run_id: id,
    request_id: loggedRequestId(request.requestId),
    pipeline_name: request.pipeline ?? null,
    step,
    service_client: client,
    table_name: table,
    status_code: outcome === 'cancelled' ? 499 : 200,
    duration_ms: durations[step],
    error_message: outcome === 'cancelled' ? outcome : null,
    details: { ...(request.dryRun && { dry_run: true }), ...details },
  })
  const made = { candidates: tally.candidates(), ...groupingDetails(source.shape) }
  const stored = { rows_inserted: sink.inserted(), rows_refused: sink.refused().count, outcome }
  return [
    stepOf('source', request.source.client, source.table, { rows_fetched: tally.fetched() }),
    stepOf('transform', request.source.client, null, made),
    stepOf('sink', request.sink.client, sink.table, stored),
  ]
}

const groupingDetails = ({ grouping }: Shape) =>
  grouping && {
    group_by: grouping.groupBy,
    aggregation_column: grouping.column,
    aggregation_strategy: grouping.strategy,
  }

/** The table `pipeline_step_log` of the logging client. */
type StepLog = {
  /** Inserts the rows of a job; those of a job that is repeated only once. Throws if the log cannot be written. */
  write(steps: readonly LoggedStep[]): Promise<void>
  close(): Promise<void>
}

/** `url` is undefined if there is no logging client. */
export function createStepLog({ metrics }: Pick<Kernel, 'metrics'>, url: string | undefined): StepLog {
  const pool =
    url === undefined ? undefined : createLoggingPool(url, { name: 'pipeline-log', max: 1, maxWaiting: 100 })
  return {
    async write(steps) {
      try {
        if (pool === undefined) throw new Error('There is no logging client (gateway.logging_client).')
        await pool.query(INSERT, [JSON.stringify(steps)])
      } catch (error) {
        metrics.count('gatehouse_pipeline_log_failures_total')
        throw error
      }
    },
    close: async () => pool?.end(),
  }
}

const COLUMNS =
  'created_at, pipeline_run_id, request_id, pipeline_name, step, service_client, table_name, status_code, duration_ms, error_message, details'
const INSERT = `insert into public.pipeline_step_log (${COLUMNS})
  select ${COLUMNS} from jsonb_populate_recordset(null::public.pipeline_step_log, $1)
  on conflict (pipeline_run_id, step) do nothing`
