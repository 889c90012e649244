import { collectedRows } from '#databases/drivers/collected-rows.ts'
import type { CallRequest, RowsResult } from '#databases/drivers/driver.ts'
import { jsonValue, writeText } from '#databases/drivers/postgres/sql/values.ts'
import type { Answer, Exchange } from '#databases/drivers/supabase/exchange.ts'
import {
  conditionParameters,
  orderParameters,
  pathSegment,
  rangeParameters,
  refuse,
  requireDistinct,
  selectList,
} from '#databases/drivers/supabase/grammar.ts'
import type { OpenApiCatalogue } from '#databases/drivers/supabase/openapi.ts'
import type { Parameter, PostgrestRequest } from '#databases/drivers/supabase/request.ts'
import { shaped } from '#databases/drivers/supabase/rows.ts'
import { fail } from '#databases/failures.ts'
import type { Catalogue, Column, Table } from '#databases/plan/catalogue.ts'
import type { ReadPlan } from '#databases/plan/plan.ts'
import { resolve } from '#databases/plan/resolve.ts'
import { EVERY_RIGHT } from '#databases/plan/rights.ts'
import { comparisons } from '#databases/request/conditions.ts'
import type { ReadRequest } from '#databases/request/request.ts'

type Caller = { readonly exchange: Exchange; readonly catalogue: OpenApiCatalogue }

/** Calls a function. PostgREST does not describe its rows, so requested names are passed on, and PostgREST refuses unknown ones. */
export async function callFunction(
  { exchange, catalogue }: Caller,
  request: CallRequest,
): Promise<RowsResult> {
  const { read } = request
  const { schema, table: name } = read.table
  const declared = catalogue.functions.get(name)
  if (declared === undefined)
    throw fail('function_not_found', { message: `There is no function ${schema}.${name}`.slice(0, 200) })
  const { parameters, ...given } = givenBy(request, declared)
  const plan = planOf(read)
  requireDistinct(plan)
  const isAll = read.columns.some(({ kind }) => kind === 'all')
  const answer = await exchange.run(
    {
      schema,
      path: `rpc/${pathSegment(name)}`,
      ...given,
      parameters: [
        ...parameters,
        ...(isAll ? [] : [['select', selectList(catalogue, plan.table, plan.output)] as const]),
        ...rowParameters(plan),
      ],
      // Always count, because a second call could not tell whether the backend has cut the rows (db-max-rows).
      prefer: [`count=${read.count ?? 'exact'}`],
    },
    request.presence.signal(),
  )
  return answered(plan, name, answer)
}

function rowParameters({ where, sort, request: { page, head } }: ReadPlan): readonly Parameter[] {
  const limit = head ? 0 : page.limit + (page.open ? 1 : 0)
  const range = rangeParameters({ limit, offset: page.offset })
  return [...conditionParameters(where), ...orderParameters(sort), ...range]
}

/** The result is rows of a table, one row as an object, or values: each becomes a row with one member named like the function. */
async function answered(plan: ReadPlan, name: string, answer: Answer): Promise<RowsResult> {
  const { head, count, page } = plan.request
  const { limit, offset, open } = page
  const { body, is, total: all } = answer
  const total = count === undefined ? undefined : all
  if (is.kind === 'nothing' || is.kind === 'null' || head)
    return collectedRows([Buffer.from('[]')], { rows: 0, hasMore: false, total })
  if (is.kind !== 'rows')
    return collectedRows([oneRow(name, body, is.kind)], { rows: 1, hasMore: false, total })
  const { json } = await shaped(answer, is.count, { rows: limit }, plan)
  const isCut = count !== 'planned' && count !== 'estimated' && all !== undefined && offset + is.count < all
  return collectedRows([json], {
    rows: Math.min(is.count, limit),
    hasMore: (open && is.count > limit) || (is.count < limit && isCut),
    total,
  })
}

const oneRow = (name: string, body: Buffer, kind: string): Buffer =>
  Buffer.concat(
    kind === 'object'
      ? [Buffer.from('['), body, Buffer.from(']')]
      : [Buffer.from(`[{${JSON.stringify(name)}:`), body, Buffer.from('}]')],
  )

/** Query parameters of PostgREST. An argument must not have one of these names. */
const RESERVED = /^(select|columns|on_conflict|(.*\.)?(order|limit|offset|and|or))$/

type Arguments = Pick<PostgrestRequest, 'method' | 'parameters' | 'body'>

/** A read-only call is a GET, which PostgREST runs in a read-only transaction; its arguments are texts in the URL. */
function givenBy(
  { arguments: given, readOnly }: CallRequest,
  declared: ReadonlyMap<string, Column>,
): Arguments {
  const all = Object.entries(given).map(([name, value]) => ({
    name,
    value,
    column: argumentOf(name, declared, given),
  }))
  if (!readOnly) {
    const body = all.map(({ name, value, column }) => [name, jsonValue(value, column)] as const)
    return { method: 'POST', parameters: [], body: JSON.stringify(Object.fromEntries(body)) }
  }
  const taken = all.find(({ name }) => RESERVED.test(name))
  if (taken !== undefined) throw refuse(`an argument ${taken.name} in a call that only reads`)
  const parameters = all.flatMap(({ name, value, column }): Parameter[] => {
    const text = writeText(value, column)
    return text === null ? [] : [[name, text]]
  })
  return { method: 'GET', parameters }
}

function argumentOf(name: string, declared: ReadonlyMap<string, Column>, given: object): Column {
  const column = declared.get(name)
  if (column !== undefined) return column
  throw fail('invalid_arguments', {
    hint: `Its arguments are: ${[...declared.keys()].join(', ')}`,
    details: { given: Object.keys(given) },
  })
}

/** A table that has every requested column, so that all names resolve to themselves. */
function planOf(read: ReadRequest): ReadPlan {
  const named = read.columns.map((term) => {
    if (term.kind === 'relation') throw refuse('relations of the rows of a function')
    return term.kind === 'column' ? term.name : undefined
  })
  const names = [
    ...named.filter((name) => name !== undefined),
    ...comparisons(read.where).map(({ column }) => column),
    ...read.sort.map(({ column }) => column),
  ]
  const table: Table = {
    schema: read.table.schema,
    name: read.table.table,
    kind: 'view',
    estimatedRows: 0,
    columns: new Map(names.map((name) => [name, unknownColumn(name)])),
    primaryKey: [],
    constraints: [],
  }
  const only: Catalogue = { tables: [table], find: () => table, referencing: () => [] }
  // A caller who may call a function may read its result.
  return resolve(only, read, EVERY_RIGHT) as ReadPlan // a read request gives a read plan
}

const unknownColumn = (name: string): Column => ({
  name,
  type: 'unknown',
  cast: 'unknown',
  category: 'X',
  base: 'unknown',
  nullable: true,
  fallback: undefined,
  writable: false,
  identity: undefined,
})
