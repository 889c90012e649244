import type { RowsResult } from '#databases/drivers/driver.ts'
import type { Row } from '#databases/request/request.ts'
import { type GatewayCaller, kernelOf } from '#gateway/caller/caller.ts'
import {
  requireNeeded,
  requireNotFrozenSince,
  requireSameDatabase,
  requireSamePersona,
} from '#gateway/caller/caller-rights.ts'
import { fail } from '#gateway/errors.ts'
import { endable } from '#kernel/endable.ts'
import { Failure } from '#kernel/errors.ts'
import { emit, type Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { createBulkInsert } from './bulk-insert.ts'
import { type Batch, candidatesOf } from './candidates.ts'
import { atStep } from './failed-step.ts'
import { prepareRun, prepareSink, prepareSource } from './prepare-run.ts'
import { rowBatches } from './row-batches.ts'
import { endOf, eventOf, type Run, resultOf, withProgress } from './run-report.ts'
import type { RunEnd, RunOutcome, RunRequest, RunResult } from './run-result.ts'
import { createSample } from './sample.ts'
import { enqueueSteps } from './step-log.ts'
import { createTimes } from './times.ts'

/**
 * Runs a pipeline (gateway.md 9). Rows are read, transformed and inserted in batches, so memory does not grow with their number. Both callers
 * are determined again before each batch. Throws the failure of a run that could not continue; its details say what is stored.
 */
export async function runPipeline(kernel: Kernel, request: RunRequest): Promise<RunResult> {
  const ending = new AbortController()
  const signals = [ending.signal, ...(request.stopping === undefined ? [] : [request.stopping])]
  const run = await begin(kernel, { ...request, stopping: AbortSignal.any(signals) })
  const unwatch = watch(run, (reason) => ending.abort(reason))
  const outcome = await outcomeOf(run).finally(unwatch)
  const result = resultOf(run, outcome)
  await enqueueSteps(kernel, result)
  if (result.outcome !== 'cancelled' && !request.dryRun)
    await emit(kernelOf(kernel, run.source.caller), 'pipeline_completed', eventOf(run, result))
  return result
}

/** Also while a read or a write takes long, which holds locks on both ends. */
const watch = (
  { kernel, id, request, source, sinkCaller }: Run,
  end: (reason: Error) => void,
): (() => void) =>
  kernel.streams.watch({
    facts: { request_id: request.requestId, pipeline_run_id: id },
    async mayGoOn() {
      await atStep('source', request.source, () => requireStillOn(source.caller, request.source))
      if (sinkCaller !== undefined)
        await atStep('sink', request.sink, () => requireStillOn(sinkCaller, request.sink))
    },
    end,
  })

async function outcomeOf(run: Run): Promise<RunOutcome> {
  try {
    return await pump(run)
  } catch (error) {
    if (error instanceof Failure && run.request.presence.hasLeft()) return 'cancelled'
    throw withProgress(run, error)
  }
}

async function begin(kernel: Kernel, request: RunRequest): Promise<Run> {
  const { config, now, random } = kernel
  const times = createTimes()
  const deadline = performance.now() + config.gateway.pipelines.timeout
  const prepared = await prepareRun(kernel, request, deadline)
  const run: Run = {
    ...prepared,
    id: uuidv7(now(), random),
    kernel,
    request,
    times,
    deadline,
    bulk: createBulkInsert({
      write: (rows) => atStep('sink', request.sink, () => write(run, rows)),
      check: () => check(run),
      maxErrors: config.gateway.pipelines.max_errors,
      maxRows: config.limits.insert_rows,
    }),
    sample: createSample(config.limits.answer),
    fetched: 0,
    candidates: 0,
    inDoubt: 0,
  }
  return run
}

/** Moves all rows. The next batch is read and transformed while the sink stores one. */
async function pump(run: Run): Promise<RunOutcome> {
  const { kernel, request, shape, times } = run
  const result = await times.measure('source', () => atStep('source', request.source, () => run.source.run()))
  const batches = candidatesOf(rowBatches(watched(run, result)), shape, {
    maxGroups: kernel.config.gateway.pipelines.max_groups,
    jsonColumns: run.jsonColumns,
  })
  try {
    let next = batches.next()
    for (;;) {
      const { value, done } = await next
      if (done) break
      await recheckSource(run)
      next = batches.next()
      // Awaited in the next turn; until then it must not count as unhandled.
      next.catch(() => {})
      if (!(await store(run, value))) return 'too_many_errors'
      expectNoEnd(run)
      if (request.presence.hasLeft()) return 'cancelled'
    }
    requireComplete(result, request)
    return 'completed'
  } finally {
    // First, because a batch that is being read ends with it.
    await release(result)
    await batches.return(undefined)
  }
}

/** False when the sink has refused too many rows. */
async function store(run: Run, batch: Batch): Promise<boolean> {
  const { request, bulk, sample, times } = run
  run.fetched += batch.fetched
  run.candidates += batch.rows.length
  sample.add(batch)
  const goesOn = request.dryRun || (await times.measure('sink', () => bulk.insert(batch.rows)))
  request.onProgress?.({
    rowsFetched: run.fetched,
    rowsInserted: bulk.inserted(),
    errors: bulk.refused().count,
  })
  return goesOn
}

/** Measures the time of reading. */
function watched({ times, request: { source } }: Run, { json }: RowsResult): Pick<RowsResult, 'json'> {
  if (!(Symbol.asyncIterator in json)) return { json }
  const chunks = json[Symbol.asyncIterator]()
  const next = () => times.measure('source', () => atStep('source', source, () => chunks.next()))
  return { json: endable(next, () => chunks.return?.()) }
}

/** Ends the reading and frees its connection. */
async function release({ json }: RowsResult): Promise<void> {
  if (Symbol.asyncIterator in json) await json[Symbol.asyncIterator]().return?.()
}

/** A backend that returns fewer rows than there are must not look like one that has returned all. */
function requireComplete(result: RowsResult, { parts, source: { client } }: RunRequest): void {
  if (!result.facts().hasMore) return
  throw fail('result_too_large', {
    message: 'The database of the source returns fewer rows than there are',
    hint: 'Read fewer rows at once: set source.limit or source.conditions.',
    details: { limit: parts.source.limit, step: 'source', client },
  })
}

/** The rows that are still to come were selected for the caller as it was. */
const recheckSource = ({ kernel, request, source, deadline }: Run): Promise<void> =>
  atStep('source', request.source, async () => {
    const { caller } = await prepareSource(kernel, request, deadline)
    await requireSameEnd(source.caller, caller)
  })

async function requireStillOn(before: GatewayCaller, end: RunEnd): Promise<void> {
  const now = await end.caller()
  await requireSameEnd(before, now)
  requireNeeded(before, now)
}

async function requireSameEnd(before: GatewayCaller, now: GatewayCaller): Promise<void> {
  requireNotFrozenSince(before, now)
  requireSamePersona(before, now)
  await requireSameDatabase(before, now)
}

function check(run: Run): void {
  expectNoEnd(run)
  if (run.request.presence.hasLeft()) throw fail('statement_timeout', { hint: 'The caller has left.' })
}

function expectNoEnd(run: Run): void {
  const end = endOf(run)
  if (end !== undefined) throw end
}

async function write(run: Run, rows: readonly Row[]): Promise<number> {
  const insert = await prepareSink(run.kernel, run.request, rows)
  if (run.sinkCaller !== undefined) {
    // Policies and defaults of the sink depend on the claims, and all rows of a run are written for one caller.
    await requireSameEnd(run.sinkCaller, insert.caller)
  }
  requirePlanned(run, insert.plan.columns)
  try {
    return (await insert.run()).affected
  } catch (error) {
    if (error instanceof Failure && error.code === 'connection_lost') run.inDoubt = rows.length
    throw error
  }
}

/** A backend may return members that were not asked for. They would write columns that the pipeline leaves out. */
function requirePlanned({ sinkColumns }: Run, columns: readonly { readonly name: string }[]): void {
  const other = columns.find(({ name }) => !sinkColumns.has(name))
  if (other === undefined) return
  throw fail('database_error', {
    message: `The database of the source returned ${other.name}, which was not asked for`,
  })
}
