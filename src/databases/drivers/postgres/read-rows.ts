import { collectedRows } from '#databases/drivers/collected-rows.ts'
import type { OpenTransaction, Presence, RowsResult } from '#databases/drivers/driver.ts'
import type { Job, Runner, RunningStatement } from '#databases/drivers/postgres/runner.ts'
import { countSql, explainSql, selectSql } from '#databases/drivers/postgres/sql/statements.ts'
import { readsByKey } from '#databases/plan/by-key.ts'
import type { CountPlan, Output, ReadPlan, WritePlan } from '#databases/plan/plan.ts'
import { redactFailure } from '#databases/plan/redact-failure.ts'
import { tablesOf } from '#databases/plan/required-rights.ts'
import type { CountMode, Page } from '#databases/request/request.ts'
import { Failure } from '#kernel/errors.ts'

/** Larger results are streamed; below this, a failure in the middle still gets its own status. */
const HIGH_WATER = 1_048_576
/** `count: estimated` uses an estimate above this many rows; below it the rows are counted. */
const WORTH_COUNTING = 10_000
export const EMPTY = Buffer.from('[]')

/** Limits of a result: `rows` of an update or delete (the body bounds those of an insert), and `bytes`. */
export type ResultLimits = { readonly rows: number; readonly bytes: number }

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
      maxBytes: count && limits.bytes,
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

export const readsCode = (plan: ReadPlan | WritePlan): boolean =>
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

export async function countRows(
  run: Runner,
  plan: Pick<CountPlan, 'table' | 'where'>,
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
const plannedRows = (answer: unknown): number =>
  (answer as readonly [{ readonly Plan: { readonly 'Plan Rows': number } }])[0].Plan['Plan Rows'] // the form of EXPLAIN

export function relationsOf(output: readonly Output[], { rows }: ResultLimits): Job['relations'] {
  if (output.every(({ kind }) => kind === 'column')) return undefined
  const at = new Set(output.flatMap(({ kind }, index) => (kind === 'relation' ? [index] : [])))
  return { at, rows }
}

/** A streaming result: the connection is released after the last row and closed when the reader leaves. */
function flowing(running: RunningStatement, plan: ReadPlan): RowsResult {
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
  { query, release, explain }: RunningStatement,
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
