import type { WriteResult } from '#databases/drivers/driver.ts'
import { assignedTo, givenIn, jsonValue } from '#databases/drivers/postgres/sql/values.ts'
import type { Subject } from '#databases/drivers/supabase/errors.ts'
import { type Answer, type Exchange, strange } from '#databases/drivers/supabase/exchange.ts'
import {
  conditionParameters,
  nameList,
  pathSegment,
  refuse,
  requireDistinct,
  selectList,
} from '#databases/drivers/supabase/grammar.ts'
import type { OpenApiCatalogue } from '#databases/drivers/supabase/openapi.ts'
import { comparedBy, countOf, totalOf } from '#databases/drivers/supabase/read.ts'
import type { Parameter, PostgrestRequest } from '#databases/drivers/supabase/request.ts'
import { shaped } from '#databases/drivers/supabase/rows.ts'
import { fail } from '#databases/failures.ts'
import { namesOneRow } from '#databases/plan/by-key.ts'
import type { Column } from '#databases/plan/catalogue.ts'
import type { ChangePlan, DeletePlan, InsertPlan, UpdatePlan, WritePlan } from '#databases/plan/plan.ts'
import type { Row } from '#databases/request/request.ts'
import { Failure } from '#kernel/errors.ts'

type Writer = {
  readonly exchange: Exchange
  readonly catalogue: OpenApiCatalogue
  /** Rows that the answer of an update or delete holds at most. */
  readonly maxRows: number
}

export async function writeRows(writer: Writer, plan: WritePlan): Promise<WriteResult> {
  try {
    return await answered(writer, plan, await sent(writer, plan))
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'result_too_large') throw error
    throw fail('result_too_large', {
      hint: 'The rows were written. Request fewer columns, or head.',
    })
  }
}

async function answered(writer: Writer, plan: WritePlan, answer: Answer): Promise<WriteResult> {
  const affected = totalOf(answer)
  const total = plan.kind !== 'insert' && plan.request.count ? affected : undefined
  if (plan.request.head) return { json: [Buffer.from('[]')], rows: 0, affected, truncated: false, total }
  const count = countOf(answer)
  if (count !== affected) throw strange(`with ${count} rows, and counts ${affected}`)
  const maxRows = plan.kind === 'insert' ? count : writer.maxRows
  const { json } = await shaped(answer, count, { rows: maxRows }, plan)
  return { json: [json], rows: Math.min(count, maxRows), affected, truncated: count > maxRows, total }
}

function sent(writer: Writer, plan: WritePlan): Promise<Answer> {
  if (plan.kind === 'insert') return insert(writer, plan)
  return plan.kind === 'update' ? update(writer, plan) : remove(writer, plan)
}

/** PostgREST counts the changed rows. */
const COUNTED = 'count=exact'

type Extra = Pick<PostgrestRequest, 'parameters' | 'prefer'>

const NOTHING: Extra = { parameters: [], prefer: [] }

/** Requests the rows after the write, unless the caller wants none. */
const returned = (head: boolean, list: string): Extra =>
  head ? NOTHING : { parameters: [['select', list]], prefer: ['return=representation'] }

function insert({ exchange, catalogue }: Writer, plan: InsertPlan): Promise<Answer> {
  const { table, rows, columns, request } = plan
  const back = returned(request.head, selectList(catalogue, table, plan.output))
  const conflict = onConflict(plan)
  const isUniform = rows.every((row) => Object.keys(row).length === columns.length)
  const missing = request.defaultToNull || isUniform ? [] : ['missing=default']
  const names: readonly Parameter[] = columns.length === 0 ? [] : [['columns', nameList(columns)]]
  return exchange.run({
    schema: table.schema,
    method: 'POST',
    path: pathSegment(table.name),
    parameters: [...names, ...conflict.parameters, ...back.parameters],
    prefer: [...conflict.prefer, COUNTED, ...missing, ...back.prefer],
    body: JSON.stringify(rows.map((row) => bodyRow(row, columns))),
    subject: aboutInsert(plan),
  })
}

function onConflict(plan: InsertPlan): Extra {
  const { conflict } = plan
  if (conflict === undefined) return NOTHING
  if (conflict.set !== undefined) requireInserted(plan)
  const resolution = conflict.set === undefined ? 'ignore' : 'merge'
  return {
    parameters: [['on_conflict', nameList(conflict.columns)]],
    prefer: [`resolution=${resolution}-duplicates`],
  }
}

function bodyRow(row: Row, columns: readonly Column[]): Row {
  const given = columns.filter(({ name }) => Object.hasOwn(row, name))
  return Object.fromEntries(given.map((column) => [column.name, jsonValue(row[column.name] ?? null, column)]))
}

/** On a conflict PostgREST writes the inserted values, so `update_body` must equal them in every row. */
function requireInserted({ rows, columns, conflict }: InsertPlan): void {
  const keys = new Set(conflict?.columns.map(({ name }) => name))
  const set = new Map(conflict?.set?.map(({ column, value }) => [column.name, JSON.stringify(value)]))
  const isSame = columns.every(
    ({ name }) =>
      (keys.has(name) && !set.has(name)) ||
      rows.every((row) => Object.hasOwn(row, name) && JSON.stringify(row[name]) === set.get(name)),
  )
  const isAll = [...set.keys()].every((name) => columns.some((column) => column.name === name))
  if (!isSame || !isAll) throw refuse('an update_body other than the values that are inserted')
}

function update({ exchange, catalogue }: Writer, plan: UpdatePlan): Promise<Answer> {
  const values = plan.set.map(({ column, value }) => [column.name, jsonValue(value, column)] as const)
  return exchange.run({
    ...matching(catalogue, plan),
    method: 'PATCH',
    body: JSON.stringify(Object.fromEntries(values)),
    subject: aboutUpdate(plan),
  })
}

const remove = ({ exchange, catalogue }: Writer, plan: DeletePlan): Promise<Answer> =>
  exchange.run({
    ...matching(catalogue, plan),
    method: 'DELETE',
    subject: { table: plan.table, written: [], ...comparedBy(plan.where) },
  })

/** The rows that an update or delete concerns. */
function matching(catalogue: OpenApiCatalogue, plan: ChangePlan) {
  const { table, where, request } = plan
  const back = returned(request.head, listOf(catalogue, plan))
  return {
    schema: table.schema,
    path: pathSegment(table.name),
    parameters: [...conditionParameters(where), ...back.parameters],
    prefer: [COUNTED, ...back.prefer],
  }
}

function listOf(catalogue: OpenApiCatalogue, plan: ChangePlan): string {
  const { limit, offset } = plan.request
  if (limit !== undefined || offset > 0) throw refuse('limit and offset of a write')
  if (plan.sort.length > 0) throw refuse('sort_by of a write')
  if (plan.request.single && !namesOneRow(plan.table, plan.where))
    throw refuse('single for a write by other conditions than the primary key')
  requireDistinct(plan)
  return selectList(catalogue, plan.table, plan.output)
}

const aboutInsert = ({ table, columns, rows }: InsertPlan): Subject => ({
  table,
  compared: [],
  written: columns,
  given: (column) => givenIn(rows, column),
})

function aboutUpdate({ table, set, where }: UpdatePlan): Subject {
  const { compared, given } = comparedBy(where)
  return {
    table,
    compared,
    written: set.map(({ column }) => column),
    given: (column) => [...given(column), ...assignedTo(set, column)],
  }
}
