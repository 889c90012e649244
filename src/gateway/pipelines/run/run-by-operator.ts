import type { Clients } from '#databases/clients/clients.ts'
import type { Presence } from '#databases/drivers/driver.ts'
import { createOperator } from '#gateway/caller/operator-caller.ts'
import { estimateRows } from '#gateway/data/export.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { bodyOf, type PipelineBody, type PipelineDefinition } from '../definition.ts'
import { mergePipelines } from '../merge.ts'
import { runPipeline } from './run.ts'
import type { RunProgress, RunRequest } from './run-request.ts'
import type { RunResult } from './run-result.ts'

type OperatorRun = {
  readonly body: PipelineBody
  /** The pipeline that `body.pipeline` names. */
  readonly named: PipelineDefinition | undefined
  /** The client of ends that name none. */
  readonly client: string
  readonly presence: Presence
  /** Called once with the number of rows of the source, as the database estimates it, if it does. */
  readonly onEstimate: (rows: number | undefined) => Promise<(progress: RunProgress) => void>
}

/** Runs a pipeline with the rights of the admin key, without a request. */
export async function runByOperator(
  kernel: Kernel,
  clients: Clients,
  { body, named, client, presence, onEstimate }: OperatorRun,
): Promise<RunResult> {
  const parts = mergePipelines(named, body)
  const operator = createOperator(kernel, clients, presence)
  const end = (name = client): RunRequest['source'] => ({ client: name, caller: () => operator.on(name) })
  const request = {
    requestId: operator.requestId,
    pipeline: body.pipeline,
    parts,
    presence,
    dryRun: body.dry_run === true,
    needsSink: body.dry_run !== true,
    source: end(parts.source.client),
    sink: end(parts.sink.client),
  }
  try {
    const onProgress = await onEstimate(await estimate(kernel, request))
    return await runPipeline(kernel, { ...request, onProgress })
  } finally {
    operator.release()
  }
}

/** Undefined if the database has no estimate, or if the source cannot be read, which the run reports. */
async function estimate(
  kernel: Kernel,
  { parts, source }: Pick<RunRequest, 'parts' | 'source'>,
): Promise<number | undefined> {
  const { limit = Number.POSITIVE_INFINITY, ...rest } = parts.source
  const caller = await source.caller().catch(() => undefined)
  const rows = caller && (await estimateRows(kernel, caller, bodyOf(rest)))
  return rows === undefined ? undefined : Math.min(limit, rows)
}
