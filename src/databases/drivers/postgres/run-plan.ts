import { collectedRows } from '#databases/drivers/collected-rows.ts'
import type { OpenTransaction, Presence, RowsResult, WriteResult } from '#databases/drivers/driver.ts'
import type { Job, Runner, Running } from '#databases/drivers/postgres/runner.ts'
import { type Defaults, insertSql } from '#databases/drivers/postgres/sql/insert.ts'
import { isRowCheck } from '#databases/drivers/postgres/sql/row-check.ts'
import {
  countSql,
  deleteSql,
  explainSql,
  selectSql,
  updateSql,
} from '#databases/drivers/postgres/sql/statements.ts'
import { assignedTo, givenIn } from '#databases/drivers/postgres/sql/values.ts'
import { fail } from '#databases/failures.ts'
import { namesOneRow, readsByKey } from '#databases/plan/by-key.ts'
import type { CountPlan, InsertPlan, Output, ReadPlan, UpdatePlan, WritePlan } from '#databases/plan/plan.ts'
import { redactFailure } from '#databases/plan/redact-failure.ts'
import { tablesOf } from '#databases/plan/required-rights.ts'
import type { CountMode, Page } from '#databases/request/request.ts'
import { Failure } from '#kernel/errors.ts'

/** Larger results are streamed; below this, a failure in the middle still gets its own status. */
const HIGH_WATER = 1_048_576
/** `count: estimated` uses an estimate above this many rows; below it the rows are counted. */
const WORTH_COUNTING = 10_000
const EMPTY = Buffer.from('[]')

/** The rows as JSON, or with `isCsv` as lines of CSV. */
export async function selectRows(
  run: Runner,
  plan: ReadPlan,
  { isCsv = false, ...limits }: ResultLimits & { readonly isCsv?: boolean },
  on?: OpenTransaction,
  presence?: Presence,
): Promise<RowsResult> {
  const { page, count, head, stripNulls } = plan.request
  if (head) return headOnly(run, plan, isCsv ? [] : [EMPTY], on, presence)
  // With a count, wait for all rows, because they often determine it without another statement.
  // Up to the budget with relations too, and for an open page of CSV: only at the end it is known that they are too many, and that has its own status.
  const relations = relationsOf(plan.output, limits)
  const waits = relations !== undefined || (isCsv && page.open)
  const mark = count ? Number.POSITIVE_INFINITY : waits ? limits.bytes : HIGH_WATER
  const short = readsByKey(plan)
  const running = await run.start(
    {
      sql: selectSql(plan, undefined, limits.rows + 1),
      relations,
      table: plan.table,
      runsCode: readsCode(plan),
      stripNulls,
      isCsv,
      limit: page.limit,
      highWater: mark,
      ...(count && { maxBytes: limits.bytes }),
      // Not in a transaction, where the setting would apply to later statements, and where the gateway is the reader.
      isLong: count === undefined && on === undefined && !short,
      short,
      presence,
    },
    on,
  )
  if (!running.query.done) return flowing(running, plan)
  running.release()
  const { writer } = running.query
  const rows = writer?.rows ?? 0
  const total =
    count && (endsWithin(page, rows) ? page.offset + rows : await countRows(run, plan, count, on, presence))
  return collectedRows(writer?.take() ?? [EMPTY], {
    rows,
    hasMore: page.open && (writer?.more ?? false),
    total,
  })
}

/** Reads all rows of a plan without their number or time being limited, as fast as they are taken. */
export async function streamRows(
  run: Runner,
  plan: ReadPlan,
  { isCsv = false, ...limits }: ResultLimits & { readonly isCsv?: boolean },
  presence: Presence | undefined,
): Promise<RowsResult> {
  const { page, stripNulls } = plan.request
  const relations = relationsOf(plan.output, limits)
  const running = await run.start({
    sql: selectSql(plan, undefined, limits.rows + 1),
    relations: relations && { ...relations, perRow: true },
    table: plan.table,
    runsCode: readsCode(plan),
    stripNulls,
    marksJsonNull: true,
    isCsv,
    limit: page.limit,
    highWater: HIGH_WATER,
    isLong: true,
    presence,
  })
  return flowing(running, plan)
}

const readsCode = (plan: ReadPlan | WritePlan): boolean =>
  tablesOf(plan).some(({ readRunsCode }) => readRunsCode === true)

async function headOnly(
  run: Runner,
  plan: ReadPlan,
  json: readonly Buffer[],
  on?: OpenTransaction,
  presence?: Presence,
): Promise<RowsResult> {
  const { count } = plan.request
  const total = count && (await countRows(run, plan, count, on, presence))
  return collectedRows(json, { rows: 0, hasMore: false, total })
}

/** A page that is not full ends with the last row, unless it begins after all rows. */
const endsWithin = ({ limit, offset }: Page, rows: number): boolean =>
  rows < limit && (rows > 0 || offset === 0)

type Matching = Pick<CountPlan, 'table' | 'where'>

export async function countRows(
  run: Runner,
  plan: Matching,
  mode: CountMode,
  on?: OpenTransaction,
  presence?: Presence,
): Promise<number> {
  if (mode !== 'exact') {
    const estimate = plannedRows(await run.value(explainSql(plan), plan.table, on, presence))
    if (mode === 'planned' || estimate > WORTH_COUNTING) return estimate
  }
  return Number(await run.value(countSql(plan), plan.table, on, presence))
}

/** `[{ "Plan": { "Plan Rows": 3 } }]`. */
const plannedRows = (explained: unknown): number =>
  (explained as readonly [{ readonly Plan: { readonly 'Plan Rows': number } }])[0].Plan['Plan Rows'] // the form of EXPLAIN

/** Limits of a result: `rows` of an update or delete (the body bounds those of an insert), and `bytes`. */
type ResultLimits = { readonly rows: number; readonly bytes: number }

type Writing = { readonly run: Runner; readonly defaultsFor: (plan: WritePlan) => Promise<Defaults> }

export async function writeRows(
  { run, defaultsFor }: Writing,
  plan: WritePlan,
  limits: ResultLimits,
  on?: OpenTransaction,
  presence?: Presence,
): Promise<WriteResult> {
  const { head, stripNulls } = plan.request
  const matching = plan.kind === 'insert' ? undefined : await matchingRows(run, plan, on, presence)
  const running = run.finish(
    {
      ...jobOf(plan, limits.rows, await defaultsFor(plan)),
      relations: head ? undefined : relationsOf(plan.output, limits),
      ...boundOf(plan, limits.bytes, on),
      table: plan.table,
      runsCode: plan.table.writeRunsCode === true || readsCode(plan),
      stripNulls,
      presence,
    },
    on,
  )
  const { writer, affected } = await running.catch(explainRowCheck(plan))
  const total = plan.kind !== 'insert' && plan.request.count ? (matching ?? affected) : undefined
  // Only the check of its rows has come back.
  if (head) return { json: [EMPTY], rows: 0, affected, truncated: false, total }
  return {
    json: writer?.take() ?? [EMPTY],
    rows: writer?.rows ?? 0,
    affected,
    truncated: writer?.more ?? false,
    total,
  }
}

const explainRowCheck =
  (plan: WritePlan) =>
  (error: unknown): never => {
    const isChecked = plan.kind !== 'delete' && plan.check !== undefined
    if (!isChecked || !(error instanceof Failure) || !isRowCheck(error.cause)) throw error
    throw fail('outside_route', { cause: error.cause })
  }

/**
 * A write whose result is too large is rolled back: it commits by a separate message after all rows have arrived, which costs a round trip.
 * A write of one row does not need that, because a row is bounded itself (frames.ts). A transaction rolls back anyway.
 */
function boundOf(
  plan: WritePlan,
  maxBytes: number,
  on: OpenTransaction | undefined,
): Pick<Job, 'maxBytes' | 'commitsLast'> {
  const isOneRow = plan.kind === 'insert' ? plan.rows.length === 1 : namesOneRow(plan.table, plan.where)
  const isShort = isOneRow && plan.output.every(({ kind }) => kind === 'column')
  return plan.request.head || isShort ? {} : { maxBytes, commitsLast: on === undefined }
}

function relationsOf(output: readonly Output[], { rows }: ResultLimits): Job['relations'] {
  if (output.every(({ kind }) => kind === 'column')) return undefined
  const at = new Set(output.flatMap(({ kind }, index) => (kind === 'relation' ? [index] : [])))
  return { at, rows }
}

/** Only a write with limit or offset changes fewer rows than match. */
async function matchingRows(
  run: Runner,
  plan: Exclude<WritePlan, InsertPlan>,
  on?: OpenTransaction,
  presence?: Presence,
): Promise<number | undefined> {
  const { count, limit, offset } = plan.request
  if (!count || (limit === undefined && offset === 0)) return undefined
  return countRows(run, plan, count, on, presence)
}

function jobOf(plan: WritePlan, limit: number, defaults: Defaults): Job {
  if (plan.kind === 'insert') return insertJob(plan, limit, defaults)
  return plan.kind === 'update' ? updateJob(plan, limit) : { sql: deleteSql(plan, limit + 1), limit }
}

const insertJob = (plan: InsertPlan, limit: number, defaults: Defaults): Job => {
  const set = plan.conflict?.set ?? []
  return {
    sql: insertSql(plan, defaults, limit + 1),
    written: [...new Set([...plan.columns, ...set.map(({ column }) => column)])],
    given: (column) => [...givenIn(plan.rows, column), ...assignedTo(set, column)],
  }
}

const updateJob = (plan: UpdatePlan, limit: number): Job => ({
  sql: updateSql(plan, limit + 1),
  limit,
  written: plan.set.map(({ column }) => column),
  given: (column) => assignedTo(plan.set, column),
})

/** A streaming result: the connection is released after the last row and closed when the reader leaves. */
function flowing(running: Running, plan: ReadPlan): RowsResult {
  const { query } = running
  return {
    json: untilEnd(running, plan),
    facts() {
      if (!query.done) throw new Error('The rows have not been read to their end')
      return {
        rows: query.writer?.rows ?? 0,
        hasMore: plan.request.page.open && (query.writer?.more ?? false),
        total: undefined,
      }
    },
  }
}

/** Not a generator: returning from an unstarted generator runs no code, and the connection would stay in use. */
function untilEnd(
  { query, release, explain }: Running,
  { rights, request }: ReadPlan,
): AsyncIterableIterator<Buffer> {
  const chunks = query.chunks()
  let ended = false
  let freed = false
  const free = () => {
    if (!freed) release()
    freed = true
  }
  query.whenOver = free
  const end = () => {
    if (ended) return
    ended = true
    if (!query.done) query.abandon()
    // Frees the memory of rows that were not taken.
    query.takeRows()
    free()
  }
  return {
    async next() {
      try {
        const result = await chunks.next()
        if (result.done) end()
        return result
      } catch (error) {
        end()
        // The planner has answered with the first rows, so it does not see this failure.
        const failure = explain(error)
        throw failure instanceof Failure ? redactFailure(rights, failure, request) : failure
      }
    },
    async return() {
      end()
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
