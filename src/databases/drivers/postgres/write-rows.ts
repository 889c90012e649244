import type { OpenTransaction, Presence, WriteResult } from '#databases/drivers/driver.ts'
import {
  countRows,
  EMPTY,
  type ResultLimits,
  readsCode,
  relationsOf,
} from '#databases/drivers/postgres/read-rows.ts'
import type { Job, Runner } from '#databases/drivers/postgres/runner.ts'
import { type Defaults, insertSql } from '#databases/drivers/postgres/sql/insert.ts'
import { isRowCheck } from '#databases/drivers/postgres/sql/row-check.ts'
import { deleteSql, updateSql } from '#databases/drivers/postgres/sql/statements.ts'
import { assignedTo, givenIn } from '#databases/drivers/postgres/sql/values.ts'
import { fail } from '#databases/failures.ts'
import { namesOneRow } from '#databases/plan/by-key.ts'
import type { ChangePlan, InsertPlan, UpdatePlan, WritePlan } from '#databases/plan/plan.ts'
import { Failure } from '#kernel/errors.ts'

type WriteRunner = { readonly run: Runner; readonly defaultsFor: (plan: WritePlan) => Promise<Defaults> }

export async function writeRows(
  { run, defaultsFor }: WriteRunner,
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

/** Only a write with limit or offset changes fewer rows than match. */
async function matchingRows(
  run: Runner,
  plan: ChangePlan,
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
