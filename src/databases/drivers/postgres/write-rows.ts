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
import type { Column } from '#databases/plan/catalogue.ts'
import type { WritePlan } from '#databases/plan/plan.ts'
import { Failure } from '#kernel/errors.ts'

export type DefaultsReader = (plan: WritePlan) => Promise<Defaults>
type WriteRunner = { readonly run: Runner; readonly defaultsFor: DefaultsReader }

/** Inserts, updates or deletes rows, and returns those that were written, unless the request wants no rows (`head`). */
export async function writeRows(
  { run, defaultsFor }: WriteRunner,
  plan: WritePlan,
  limits: ResultLimits,
  on?: OpenTransaction,
  presence?: Presence,
): Promise<WriteResult> {
  const { head, stripNulls } = plan.request
  const matching = await countMatching(run, plan, on, presence)
  const job: Job = {
    ...statementOf(plan, limits.rows, await defaultsFor(plan)),
    ...resultOf(plan, limits, on),
    table: plan.table,
    runsCode: plan.table.writeRunsCode === true || readsCode(plan),
    stripNulls,
    presence,
  }
  const { writer, affected } = await run.finish(job, on).catch((error) => {
    throw failureOf(plan, error)
  })
  const total = plan.kind !== 'insert' && plan.request.count ? (matching ?? affected) : undefined
  // With `head`, a row of the result holds only its check.
  if (head || writer === undefined) return { json: [EMPTY], rows: 0, truncated: false, affected, total }
  return { json: writer.take(), rows: writer.rows, truncated: writer.more, affected, total }
}

/** The rows that match, before the write. Undefined where as many are written. */
async function countMatching(
  run: Runner,
  plan: WritePlan,
  on?: OpenTransaction,
  presence?: Presence,
): Promise<number | undefined> {
  if (plan.kind === 'insert') return undefined
  const { count, limit, offset } = plan.request
  const writesFewer = limit !== undefined || offset > 0
  return count && writesFewer ? countRows(run, plan, count, on, presence) : undefined
}

/** The statement, and the values of the request in it, for its errors. `rows`: the most that come back; the body bounds those of an insert. */
function statementOf(plan: WritePlan, rows: number, defaults: Defaults): Job {
  // Of the rows of a relation, one more shows that there are too many.
  const relationRows = rows + 1
  if (plan.kind === 'delete') return { sql: deleteSql(plan, relationRows), limit: rows }
  const set = plan.kind === 'update' ? plan.set : (plan.conflict?.set ?? [])
  const assigned = set.map(({ column }) => column)
  const given = (column: Column) => assignedTo(set, column)
  if (plan.kind === 'update')
    return { sql: updateSql(plan, relationRows), limit: rows, written: assigned, given }
  return {
    sql: insertSql(plan, defaults, relationRows),
    written: [...new Set([...plan.columns, ...assigned])],
    given: (column) => [...givenIn(plan.rows, column), ...given(column)],
  }
}

/**
 * A write whose result is too large is rolled back: it commits by a separate message after all rows have arrived, which costs a round trip.
 * A write of one row does not need that, because a row is bounded itself (frames.ts). A transaction rolls back anyway.
 */
function resultOf(
  plan: WritePlan,
  limits: ResultLimits,
  on: OpenTransaction | undefined,
): Pick<Job, 'relations' | 'maxBytes' | 'commitsLast'> {
  if (plan.request.head) return {}
  const relations = relationsOf(plan.output, limits)
  const isOneRow = plan.kind === 'insert' ? plan.rows.length === 1 : namesOneRow(plan.table, plan.where)
  const isBounded = isOneRow && plan.output.every(({ kind }) => kind === 'column')
  return isBounded ? {} : { relations, maxBytes: limits.bytes, commitsLast: on === undefined }
}

/** A row that does not satisfy the check of a public route fails the statement. */
function failureOf(plan: WritePlan, error: unknown): unknown {
  const isChecked = plan.kind !== 'delete' && plan.check !== undefined
  const isOutside = isChecked && error instanceof Failure && isRowCheck(error.cause)
  return isOutside ? fail('outside_route', { cause: error.cause }) : error
}
