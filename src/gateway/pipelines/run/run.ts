import { kernelOf } from '#gateway/caller/caller.ts'
import { fail } from '#gateway/errors.ts'
import { Failure } from '#kernel/errors.ts'
import type { EventData } from '#kernel/events.ts'
import type { LoggedStep } from '#kernel/jobs.ts'
import { emit, type Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { candidatesOf, parseTransform } from './candidates.ts'
import { createLifetime } from './lifetime.ts'
import type { RunRequest } from './run-request.ts'
import { failureOf, type Run, type RunOutcome, type RunResult, resultOf } from './run-result.ts'
import { openSink } from './sink.ts'
import { openSource } from './source.ts'
import { enqueueSteps, stepsOf } from './step-log.ts'
import { createTally } from './tally.ts'

/**
 * Runs a pipeline (gateway.md 9). Rows are read, transformed and inserted in batches, so memory does not grow with their number. Both callers
 * are determined again before each batch. Throws the failure of a run that could not continue; its details say what is stored.
 */
export async function runPipeline(kernel: Kernel, request: RunRequest): Promise<RunResult> {
  const run = await begin(kernel, request)
  const unwatch = watch(kernel, run)
  const outcome = await outcomeOf(kernel, run).finally(unwatch)
  const result = resultOf(run, outcome)
  const steps = stepsOf(kernel, run, outcome)
  await enqueueSteps(kernel, run, steps)
  if (outcome !== 'cancelled' && !request.dryRun)
    await emit(kernelOf(kernel, run.source.caller), 'pipeline_completed', eventOf(run, steps))
  return result
}

/** Finds all names and checks all rights. */
async function begin(kernel: Kernel, request: RunRequest): Promise<Run> {
  const { config, now, random } = kernel
  const lifetime = createLifetime(config, request)
  const transform = parseTransform(kernel, request.parts.transform)
  requireTables(request)
  const source = await openSource(kernel, request, transform, lifetime)
  const sink = await openSink(kernel, request, source.shape.columns, lifetime)
  const run = { id: uuidv7(now(), random), request, lifetime, source, sink }
  requireSnapshot(run)
  return { ...run, tally: createTally(config.limits.answer) }
}

function requireTables({ parts: { source, sink }, needsSink }: RunRequest): void {
  if (source.table_name === undefined) throw missingTable('source')
  if (sink.table_name === undefined && needsSink) throw missingTable('sink')
}

const missingTable = (part: 'source' | 'sink') =>
  fail('missing_table', {
    message: `${part}.table_name is missing`,
    details: { field: `${part}.table_name` },
  })

/** A backend whose reads return rows that are written meanwhile would read the rows of its own sink without end. */
function requireSnapshot({ request, source, sink }: Pick<Run, 'request' | 'source' | 'sink'>): void {
  const { client, backend } = source.caller
  const isSame = client.name === request.sink.client && source.table === sink.table
  if (!isSame || request.dryRun || source.shape.grouping !== undefined || backend.readsSnapshot === true)
    return
  throw fail('invalid_pipeline', {
    message: `With the driver ${backend.name}, the sink cannot be the table of the source`,
    details: { field: 'sink.table_name' },
  })
}

/** Also while a read or a write takes long, which holds locks on both ends. */
const watch = ({ streams }: Kernel, { id, request, lifetime, source, sink }: Run): (() => void) =>
  streams.watch({
    facts: { request_id: request.requestId, pipeline_run_id: id },
    async mayGoOn() {
      await source.requireStillOn()
      await sink.requireStillOn()
    },
    end: lifetime.stop,
  })

async function outcomeOf(kernel: Kernel, run: Run): Promise<RunOutcome> {
  try {
    return await pump(kernel, run)
  } catch (error) {
    if (error instanceof Failure && run.request.presence.hasLeft()) return 'cancelled'
    throw failureOf(run, error)
  }
}

/** Moves all rows. The next batch is read and transformed while the sink stores one. */
async function pump({ config }: Kernel, run: Run): Promise<RunOutcome> {
  const { request, lifetime, source, tally, sink } = run
  const reading = await source.read()
  const batches = candidatesOf(reading.batches, source.shape, {
    maxGroups: config.gateway.pipelines.max_groups,
    jsonColumns: sink.jsonColumns,
    wantsTexts: tally.wantsTexts,
  })
  try {
    let next = batches.next()
    for (;;) {
      const { value: batch, done } = await next
      if (done) break
      await source.recheck()
      next = batches.next()
      // Awaited in the next turn; until then it must not count as unhandled.
      next.catch(() => {})
      tally.add(batch)
      const goesOn = await sink.insert(batch.rows)
      const errors = sink.refused().count
      request.onProgress?.({ rowsFetched: tally.fetched(), rowsInserted: sink.inserted(), errors })
      if (!goesOn) return 'too_many_errors'
      lifetime.check()
    }
    reading.requireComplete()
    return 'completed'
  } finally {
    // First, because a batch that is being read ends with it.
    await reading.close()
    await batches.return(undefined)
  }
}

const eventOf = (
  { id, request, source, sink }: Run,
  steps: readonly LoggedStep[],
): EventData['pipeline_completed'] => ({
  client: request.source.client,
  request_id: request.requestId,
  pipeline_run_id: id,
  pipeline_name: request.pipeline ?? null,
  source_table: source.table,
  sink_client: request.sink.client,
  sink_table: sink.table ?? '',
  affected_rows: sink.inserted(),
  failed_rows: sink.refused().count,
  duration_ms: steps.reduce((sum, { duration_ms }) => sum + duration_ms, 0),
})
