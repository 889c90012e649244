import { requireAbility } from '#databases/drivers/abilities.ts'
import { ALWAYS_PRESENT } from '#databases/drivers/presence.ts'
import { snakeCased } from '#databases/request/fields.ts'
import type { Row } from '#databases/request/request.ts'
import { Failure } from '#kernel/errors.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { linesOf } from '#kernel/lines.ts'
import { type BulkInsert, createBulkInsert, isAboutRows, isInDoubt } from '../bulk/bulk-insert.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { requireSameDatabase, requireSamePersona } from '../caller/caller-rights.ts'
import { emitEvent } from '../data/data.ts'
import { fail } from '../errors.ts'
import { type Prepared, prepare } from '../prepare.ts'
import { type CsvRecord, csvRecords, textsOf } from './csv-records.ts'
import type { ImportCounts, ImportRequest, ImportResult } from './import-result.ts'
import {
  type BadRow,
  type CsvTarget,
  csvBatches,
  jsonBatches,
  type RowBatch,
  targetNames,
} from './row-batches.ts'

/**
 * Imports a file as it arrives. Rows are inserted in batches, each of which commits, so memory does not grow with their number. Throws the failure of
 * an import that could not continue; its details say what is stored.
 */
export async function importRows(kernel: Kernel, request: ImportRequest): Promise<ImportResult> {
  const run = await begin(kernel, request)
  try {
    const outcome = await pump(run, await batchesOf(run))
    return { ...countsOf(run), dryRun: request.dryRun, outcome, errors: run.errors }
  } catch (error) {
    throw withCounts(run, error)
  }
}

type Run = {
  readonly kernel: Kernel
  readonly request: ImportRequest
  /** As at the beginning. */
  readonly caller: GatewayCaller
  readonly bulk: BulkInsert
  readonly errors: BadRow[]
  /** Rows that could not be read. */
  unreadable: number
  read: number
  given: number
  skipped: number
  /** Rows of a statement whose outcome is unknown. */
  inDoubt: number
}

/** Requires the right to the table before anything is read. */
async function begin(kernel: Kernel, request: ImportRequest): Promise<Run> {
  const { config } = kernel
  const { caller } = await prepareInsert(kernel, request, await request.caller(), [{}])
  if (request.dryRun) requireAbility(caller.backend, 'transaction')
  const run: Run = {
    kernel,
    request,
    caller,
    errors: [],
    unreadable: 0,
    read: 0,
    given: 0,
    skipped: 0,
    inDoubt: 0,
    bulk: createBulkInsert({
      write: (rows) => write(run, rows),
      check: () => expectNoEnd(run),
      maxErrors: config.gateway.pipelines.max_errors,
      maxRows: config.limits.insert_rows,
      // The members of a line are its own.
      isRefusal: (failure) =>
        isAboutRows(failure) || (request.format === 'jsonl' && failure.code === 'unknown_column'),
    }),
  }
  return run
}

const prepareInsert = (
  kernel: Kernel,
  { target }: ImportRequest,
  caller: GatewayCaller,
  rows: readonly Row[],
): Promise<Prepared<'insert'>> =>
  // A statement ends although the caller has left, so that the number of stored rows is known.
  prepare(
    kernel,
    { ...caller, presence: ALWAYS_PRESENT },
    { ...target, insert_body: rows, head: true },
    'insert',
  )

async function batchesOf(run: Run): Promise<AsyncGenerator<RowBatch>> {
  const { kernel, request } = run
  const { chunks, aliases, delimiter } = request
  const maxLength = kernel.config.limits.body_bulk
  if (request.format === 'jsonl') return jsonBatches(linesOf(chunks, maxLength), aliases)
  const records = csvRecords(textsOf(chunks), { delimiter, maxLength })
  const [names, ...first] = await firstRecords(records)
  if (names === undefined)
    throw fail('invalid_file', { message: 'The file is empty; its first line names its columns' })
  const targets = await targetsOf(run, names.cells)
  return csvBatches(following(first, records), targets)
}

/** The first chunk may have no whole record. */
async function firstRecords(records: AsyncGenerator<readonly CsvRecord[]>): Promise<readonly CsvRecord[]> {
  for (;;) {
    const { value, done } = await records.next()
    if (done) return []
    if (value.length > 0) return value
  }
}

async function* following<T>(first: T, rest: AsyncIterable<T>): AsyncGenerator<T> {
  yield first
  yield* rest
}

/** Finds the columns of the table, and requires that they can be written. */
async function targetsOf(
  { kernel, request, caller }: Run,
  names: CsvRecord['cells'],
): Promise<readonly CsvTarget[]> {
  const { limits, gateway } = kernel.config
  const targets = targetNames(names, request.aliases, limits.columns)
  const row = Object.fromEntries(targets.flatMap((name) => (name === null ? [] : [[name, null]])))
  const { plan } = await prepareInsert(kernel, request, caller, [row])
  const columns = new Map(plan.columns.map((column) => [column.name, column]))
  return targets.map((name) => {
    const column =
      name === null
        ? undefined
        : columns.get(gateway.force_camel_case_to_snake_case ? snakeCased(name) : name)
    return name === null || column === undefined ? undefined : { name, column }
  })
}

/** Stores all rows. The next batch is read while the database stores one. */
async function pump(run: Run, batches: AsyncGenerator<RowBatch>): Promise<ImportResult['outcome']> {
  try {
    let next = batches.next()
    for (;;) {
      const { value, done } = await next
      if (done) return 'completed'
      next = batches.next()
      // Awaited in the next turn; until then it must not count as unhandled.
      next.catch(() => {})
      if (!(await store(run, value))) return 'too_many_errors'
      expectNoEnd(run)
    }
  } finally {
    // Not awaited: the next batch may still wait for its bytes.
    void batches.return(undefined)
  }
}

/** Errors that are reported in full. */
const REPORTED = 10_000

/** False when too many rows were refused. */
async function store(run: Run, { rows, places, bad }: RowBatch): Promise<boolean> {
  const { bulk, errors, request, kernel } = run
  const [before, known] = [run.given, bulk.refused().errors.length]
  run.given += rows.length
  run.read += rows.length + bad.length
  run.unreadable += bad.length
  const goesOn = await bulk.insert(rows)
  const refused = bulk
    .refused()
    .errors.slice(known)
    .flatMap(({ index, ...refusal }): BadRow[] => {
      const place = places[index - before]
      return place === undefined ? [] : [{ ...place, ...refusal }]
    })
  const all = [...bad, ...refused].sort((one, other) => one.row - other.row)
  errors.push(...all.slice(0, Math.max(0, REPORTED - errors.length)))
  request.onProgress?.(countsOf(run))
  return goesOn && countsOf(run).rowsRefused < kernel.config.gateway.pipelines.max_errors
}

async function write(run: Run, rows: readonly Row[]): Promise<number> {
  const { kernel, request } = run
  const caller = await request.caller()
  // Policies and defaults depend on the claims, and all rows of a file are written for one caller.
  requireSamePersona(run.caller, caller)
  await requireSameDatabase(run.caller, caller)
  const insert = await prepareInsert(kernel, request, caller, rows)
  const affected = await (request.dryRun ? tried(insert) : stored(run, insert))
  run.skipped += rows.length - affected
  return affected
}

async function stored(run: Run, insert: Prepared<'insert'>): Promise<number> {
  try {
    const result = await insert.run()
    await emitEvent(run.kernel, insert, result)
    return result.affected
  } catch (error) {
    if (isInDoubt(error)) run.inDoubt = insert.plan.rows.length
    throw error
  }
}

/** Ends the transaction of a dry run. */
class Undone extends Error {}

async function tried(insert: Prepared<'insert'>): Promise<number> {
  let affected = 0
  const work = async (on: object) => {
    affected = (await insert.run(on)).affected
    throw new Undone()
  }
  const run = requireAbility(insert.caller.backend, 'transaction')
  await run(work, { presence: ALWAYS_PRESENT }).catch((error: unknown) => {
    if (!(error instanceof Undone)) throw error
  })
  return affected
}

function expectNoEnd({ request }: Run): void {
  const end = request.end()
  if (end !== undefined) throw end
}

const countsOf = ({ bulk, unreadable, read, skipped }: Run): ImportCounts => ({
  rowsRead: read,
  rowsInserted: bulk.inserted(),
  rowsSkipped: skipped,
  rowsRefused: bulk.refused().count + unreadable,
})

/** The same failure with what the import has stored so far. */
function withCounts(run: Run, error: unknown): unknown {
  if (!(error instanceof Failure)) return error
  const { code, status, message, hint, details, headers } = error
  const { rowsRead, rowsInserted, rowsRefused } = countsOf(run)
  const counts = {
    rows_read: rowsRead,
    rows_inserted: run.request.dryRun ? 0 : rowsInserted,
    rows_refused: rowsRefused,
    ...(run.inDoubt > 0 && { rows_in_doubt: run.inDoubt }),
  }
  return new Failure(code, status, message, {
    ...(hint !== undefined && { hint }),
    ...(headers !== undefined && { headers }),
    details: { ...details, ...counts },
    cause: error,
  })
}
