import { createLoggingPool } from '#gateway/logging/logging-pool.ts'
import { loggedRequestId } from '#kernel/audit/record-act.ts'
import type { LoggedStep } from '#kernel/jobs.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { RunResult } from './run-result.ts'

/**
 * Enqueues the rows of a run as one job of the durable queue, before the result is answered. A failure is counted and logged: the rows of the
 * sink are stored already, so the run has succeeded.
 */
export async function enqueueSteps(kernel: Kernel, result: RunResult): Promise<void> {
  try {
    await kernel.jobs.enqueue(kernel.db, 'log-pipeline-steps', { steps: stepsOf(result, kernel.now()) })
  } catch (error) {
    kernel.metrics.count('gatehouse_pipeline_log_failures_total')
    kernel.log.error(
      { event: 'pipeline_log_lost', pipeline_run_id: result.id, error },
      'the steps of a pipeline run could not be enqueued for the log',
    )
  }
}

const stepsOf = ({ id, requestId, pipeline, steps }: RunResult, at: Date): LoggedStep[] =>
  steps.map(({ step, client, table, statusCode, durationMs, errorMessage, details }) => ({
    created_at: at.toISOString(),
    pipeline_run_id: id,
    request_id: loggedRequestId(requestId),
    pipeline_name: pipeline ?? null,
    step,
    service_client: client,
    table_name: table,
    status_code: statusCode,
    duration_ms: Math.round(durationMs),
    error_message: errorMessage,
    details,
  }))

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
