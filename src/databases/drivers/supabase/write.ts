import type { WriteResult } from '#databases/drivers/driver.ts'
import { assignedTo, givenIn, jsonValue } from '#databases/drivers/postgres/sql/values.ts'
import type { Subject } from '#databases/drivers/supabase/errors.ts'
import { type Answer, type Exchange, strange } from '#databases/drivers/supabase/exchange.ts'
import {
  pathOf,
  quoteName,
  refuse,
  requireDistinct,
  selectList,
} from '#databases/drivers/supabase/grammar.ts'
import type { OpenApiCatalogue } from '#databases/drivers/supabase/openapi.ts'
import { comparedBy, countOf, filtered, totalOf } from '#databases/drivers/supabase/read.ts'
import { shaped } from '#databases/drivers/supabase/rows.ts'
import { fail } from '#databases/failures.ts'
import type { DeletePlan, InsertPlan, UpdatePlan, WritePlan } from '#databases/plan/plan.ts'
import { Failure } from '#kernel/errors.ts'

export type Writer = {
  readonly exchange: Exchange
  readonly catalogue: OpenApiCatalogue
  /** Rows that the answer of an update or delete holds at most. */
  readonly maxRows: number
}

/** PostgREST counts what it has changed. */
const COUNTED = { count: 'exact' } as const

export async function writeRows(writer: Writer, plan: WritePlan): Promise<WriteResult> {
  try {
    return await answered(writer, plan, await sent(writer, plan))
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'result_too_large') throw error
    throw fail('result_too_large', {
      hint: 'The rows were written. Ask for fewer columns back, or for head.',
    })
  }
}

async function answered(writer: Writer, plan: WritePlan, answer: Answer): Promise<WriteResult> {
  const affected = totalOf(answer)
  const total = plan.kind !== 'insert' && plan.count ? affected : undefined
  if (plan.head) return { json: [Buffer.from('[]')], rows: 0, affected, truncated: false, total }
  const count = countOf(answer)
  if (count !== affected) throw strange(`with ${count} rows, and counts ${affected}`)
  const most = plan.kind === 'insert' ? count : writer.maxRows
  const { json } = await shaped(answer, count, { rows: most }, plan)
  return { json: [json], rows: Math.min(count, most), affected, truncated: count > most, total }
}

function sent(writer: Writer, plan: WritePlan): Promise<Answer> {
  if (plan.kind === 'insert') return insert(writer, plan)
  return plan.kind === 'update' ? update(writer, plan) : remove(writer, plan)
}

/** The rows as one text of JSON: of an array the library would collect the columns row by row, in quadratic time. */
const asBody = ({ rows, columns }: InsertPlan) => ({
  toJSON: () =>
    rows.map((row) => {
      const given = columns.filter(({ name }) => Object.hasOwn(row, name))
      return Object.fromEntries(
        given.map((column) => [column.name, jsonValue(row[column.name] ?? null, column)]),
      )
    }),
})

function insert({ exchange, catalogue }: Writer, plan: InsertPlan): Promise<Answer> {
  const { table, rows, columns, conflict } = plan
  const list = selectList(catalogue, table, plan.output)
  const names = columns.map(({ name }) => quoteName(name)).join(',')
  const isUniform = rows.every((row) => Object.keys(row).length === columns.length)
  const options = { ...COUNTED, defaultToNull: plan.defaultToNull || isUniform }
  if (conflict?.set !== undefined) requireInserted(plan)
  const onConflict = conflict?.columns.map(({ name }) => quoteName(name)).join(',')
  return exchange.run(
    table.schema,
    (client) => {
      const into = client.from(pathOf(table.name))
      if (names !== '') into.url.searchParams.set('columns', names)
      const written =
        onConflict === undefined
          ? into.insert(asBody(plan), options)
          : into.upsert(asBody(plan), {
              ...options,
              onConflict,
              ignoreDuplicates: conflict?.set === undefined,
            })
      return plan.head ? written : written.select(list)
    },
    aboutInsert(plan),
  )
}

/** On a conflict PostgREST writes what was to be inserted: `update_body` has to say the same, for every row. */
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
  const list = listOf(catalogue, plan)
  const values = Object.fromEntries(
    plan.set.map(({ column, value }) => [column.name, jsonValue(value, column)]),
  )
  return exchange.run(
    plan.table.schema,
    (client) => {
      const written = filtered(client.from(pathOf(plan.table.name)).update(values, COUNTED), plan.where)
      return plan.head ? written : written.select(list)
    },
    aboutUpdate(plan),
  )
}

function remove({ exchange, catalogue }: Writer, plan: DeletePlan): Promise<Answer> {
  const list = listOf(catalogue, plan)
  return exchange.run(
    plan.table.schema,
    (client) => {
      const written = filtered(client.from(pathOf(plan.table.name)).delete(COUNTED), plan.where)
      return plan.head ? written : written.select(list)
    },
    { table: plan.table, written: [], ...comparedBy(plan.where) },
  )
}

function listOf(catalogue: OpenApiCatalogue, plan: UpdatePlan | DeletePlan): string {
  if (plan.limit !== undefined || plan.offset > 0) throw refuse('limit and offset of a write')
  if (plan.sort.length > 0) throw refuse('sort_by of a write')
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
