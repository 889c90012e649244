import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { FAILURES_OF } from '#databases/failures.ts'
import { named } from '#kernel/http/document/components.ts'
import { Id, OneOf } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { createRunLimit } from '../bulk/run-limit.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { gatewayCaller } from '../caller/caller.ts'
import { Row } from '../data/grammar.ts'
import { sendWhole } from '../data/send-result.ts'
import { fail } from '../errors.ts'
import { type PipelineBody, pipelineSchemas } from './definition.ts'
import { mergePipelines } from './merge.ts'
import type { PipelineRegistry } from './registry.ts'
import { runPipeline } from './run/run.ts'
import type { RunEnd, RunRequest } from './run/run-request.ts'
import { resultJson } from './run/run-result.ts'
import { RUN_TYPES, sendProgress, wantsProgress } from './run/send-progress.ts'

const PipelineRun = Type.Object(
  {
    data: Type.Array(Row, { description: 'The first 1,000 candidates, with the names of the sink' }),
    data_truncated: Type.Optional(Type.Boolean({ description: 'There are more candidates than data has' })),
    rows_fetched: Type.Integer({ description: 'Rows that were read from the source' }),
    rows_inserted: Type.Integer({ description: 'Rows that are stored in the sink' }),
    would_insert: Type.Integer({ description: 'Candidates of a dry run, otherwise 0' }),
    dry_run: Type.Boolean(),
    source_client: Type.String(),
    sink_client: Type.String(),
    errors: Type.Array(
      Type.Object(
        {
          index: Type.Integer({ description: 'The position of the row among the candidates, from 0' }),
          error: Type.String(),
          code: Type.String(),
        },
        named('RefusedRow'),
      ),
      { description: 'Rows that the sink has refused, at most 10,000' },
    ),
    errors_truncated: Type.Optional(Type.Boolean({ description: 'More rows were refused' })),
    stopped: Type.Optional(
      OneOf(['too_many_errors'], {
        description: 'The run has stopped because of gateway.pipelines.max_errors refused rows',
      }),
    ),
    pipeline_run_id: Id,
  },
  named('PipelineRun'),
)

const PROGRESS =
  'With `Accept: application/x-ndjson` the answer has lines: `progress` after batches (`rows_fetched`, `rows_inserted`, `rows_refused`), and then `result` or `failure`. What fails before the first batch is answered with its status.'

/** Codes of a run beside those of data operations. */
const CODES = [
  'unknown_pipeline',
  'invalid_pipeline',
  'too_many_groups',
  'too_many_runs',
  'pipeline_timeout',
  'pipeline_stopped',
  'caller_changed',
  'client_changed',
]

/** The last statement of a run may end this much later, in milliseconds. */
const LAST_STATEMENT = 60_000

export function pipelineRoutes(
  app: App,
  kernel: Kernel,
  access: GatewayAccess,
  pipelines: PipelineRegistry,
): void {
  const { limits, gateway } = kernel.config
  const runs = createRunLimit(gateway.pipelines.max_runs)
  const { PipelineBody } = pipelineSchemas(kernel.config)
  const stopping = new AbortController()
  app.addHook('preClose', async () => stopping.abort())
  const route = {
    method: 'POST',
    bodyLimit: limits.body_bulk,
    config: {
      access: access.fixed(['pipelines.run'], { asData: true }),
      failures: [...FAILURES_OF.data, ...CODES],
      produces: RUN_TYPES,
      timeout: gateway.pipelines.timeout + LAST_STATEMENT,
    },
  } as const

  const run = async (
    request: FastifyRequest,
    reply: FastifyReply,
    body: PipelineBody,
    { needsSink, dryRun }: { readonly needsSink: boolean; readonly dryRun: boolean },
  ) => {
    const asked = {
      ...requestOf(request, reply, { access, pipelines, body }),
      needsSink,
      dryRun,
      stopping: stopping.signal,
    }
    // A dry run does not reach its sink, so it must not keep others from it.
    const release = await runs.acquire(
      dryRun ? [asked.source.client] : [asked.source.client, asked.sink.client],
    )
    const begin = (more: Pick<RunRequest, 'onProgress'> = {}) =>
      runPipeline(request.kernel, { ...asked, ...more }).finally(release)
    if (wantsProgress(request)) return sendProgress(reply, (onProgress) => begin({ onProgress }))
    return sendWhole(reply, resultJson(await begin()))
  }

  app.route({
    ...route,
    url: '/pipelines',
    schema: {
      operationId: 'runPipeline',
      summary: 'Read rows from one table, transform them, and insert them into another',
      description: PROGRESS,
      body: PipelineBody,
      response: { 200: PipelineRun },
    },
    handler: (request, reply) =>
      run(request, reply, request.body, { needsSink: true, dryRun: request.body.dry_run === true }),
  })
  app.route({
    ...route,
    url: '/pipelines/simulate',
    schema: {
      operationId: 'simulatePipeline',
      summary: 'Run a pipeline without inserting rows',
      description: PROGRESS,
      body: PipelineBody,
      response: { 200: PipelineRun },
    },
    handler: (request, reply) => run(request, reply, request.body, { needsSink: false, dryRun: true }),
  })
}

type RunCall = {
  readonly access: GatewayAccess
  readonly pipelines: PipelineRegistry
  readonly body: PipelineBody
}

function requestOf(
  request: FastifyRequest,
  reply: FastifyReply,
  { access, pipelines, body }: RunCall,
): Omit<RunRequest, 'needsSink' | 'dryRun' | 'stopping'> {
  const { pipeline } = body
  const known = pipeline === undefined ? undefined : pipelines.find(pipeline)
  if (pipeline !== undefined && known === undefined)
    throw fail('unknown_pipeline', { details: { field: 'pipeline', pipeline: pipeline.slice(0, 63) } })
  const parts = mergePipelines(known, body)
  const caller = gatewayCaller(request)
  const end = (client = caller.client.name): RunEnd => ({
    client,
    caller: async () => access.override(request, reply, await access.renew.again(request, reply), client),
  })
  return {
    requestId: request.id,
    pipeline,
    parts,
    presence: caller.presence,
    source: end(parts.source.client),
    sink: end(parts.sink.client),
  }
}
