import { collectedRows } from '#databases/drivers/collected-rows.ts'
import type { CallRequest, RowsResult } from '#databases/drivers/driver.ts'
import { jsonValue, writeText } from '#databases/drivers/postgres/sql/values.ts'
import type { Answer, Exchange } from '#databases/drivers/supabase/exchange.ts'
import { pathOf, refuse, requireDistinct, selectList } from '#databases/drivers/supabase/grammar.ts'
import type { OpenApiCatalogue } from '#databases/drivers/supabase/openapi.ts'
import { filtered, paged, sorted } from '#databases/drivers/supabase/read.ts'
import { shaped } from '#databases/drivers/supabase/rows.ts'
import { fail } from '#databases/failures.ts'
import type { Catalogue, Column, Table } from '#databases/plan/catalogue.ts'
import type { ReadPlan } from '#databases/plan/plan.ts'
import { resolve } from '#databases/plan/resolve.ts'
import { EVERY_RIGHT } from '#databases/plan/rights.ts'
import { comparisons } from '#databases/request/conditions.ts'
import type { ReadRequest } from '#databases/request/request.ts'

type Caller = { readonly exchange: Exchange; readonly catalogue: OpenApiCatalogue }

/** Calls a function. PostgREST does not tell what its rows have, so names are taken as they are asked for, and refused there. */
export async function callFunction(
  { exchange, catalogue }: Caller,
  request: CallRequest,
): Promise<RowsResult> {
  const { read } = request
  const { schema, table: name } = read.table
  const own = catalogue.functions.get(name)
  if (own === undefined)
    throw fail('function_not_found', { message: `There is no function ${schema}.${name}`.slice(0, 200) })
  const given = argumentsOf(request, own)
  const plan = planOf(read)
  requireDistinct(plan)
  const all = read.columns.some(({ kind }) => kind === 'all')
  const asked = plan.page.limit + (plan.page.open ? 1 : 0)
  const answer = await exchange.run(
    schema,
    (client) => {
      // In a transaction that only reads when it is asked for by GET.
      // Its rows are counted always: that the backend has given fewer (db-max-rows) cannot be asked by a second call.
      const rows = client.rpc(pathOf(name), given, { get: request.readOnly, count: plan.count ?? 'exact' })
      const part = { limit: plan.head ? 0 : asked, offset: plan.page.offset }
      const chosen = all ? rows : rows.select(selectList(catalogue, plan.table, plan.output))
      return paged(sorted(filtered(chosen, plan.where), plan.sort), part)
    },
    undefined,
    request.presence.signal(),
  )
  return answered(plan, name, answer)
}

/** Rows of a table, one row as an object, or values: each a row with one member that is called like the function. */
async function answered(plan: ReadPlan, name: string, answer: Answer): Promise<RowsResult> {
  const { limit, offset, open } = plan.page
  const { body, is, total: all } = answer
  const total = plan.count === undefined ? undefined : all
  if (is.kind === 'nothing' || is.kind === 'null' || plan.head)
    return collectedRows([Buffer.from('[]')], { rows: 0, hasMore: false, total })
  if (is.kind !== 'rows')
    return collectedRows([oneRow(name, body, is.kind)], { rows: 1, hasMore: false, total })
  const { json } = await shaped(answer, is.count, { rows: limit }, plan)
  const isCut =
    plan.count !== 'planned' && plan.count !== 'estimated' && all !== undefined && offset + is.count < all
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

/** Parameters of the address that are not arguments: an argument must not be taken for one of them. */
const RESERVED = /^(select|columns|on_conflict|(.*\.)?(order|limit|offset|and|or))$/

function argumentsOf({ arguments: given, readOnly }: CallRequest, own: ReadonlyMap<string, Column>) {
  const entries = Object.entries(given).map(([name, value]) => {
    const column = own.get(name)
    if (column === undefined)
      throw fail('invalid_arguments', {
        hint: `Its arguments are: ${[...own.keys()].join(', ')}`,
        details: { given: Object.keys(given) },
      })
    if (!readOnly) return [name, jsonValue(value, column)] as const
    if (RESERVED.test(name)) throw refuse(`an argument ${name} in a call that only reads`)
    // A text that stands in the address; the library would write an array without quotes.
    return [name, writeText(value, column) ?? undefined] as const
  })
  return Object.fromEntries(entries)
}

/** Names stand for themselves: a table that has every column that is named. */
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
  // Who may call a function may see what it gives.
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
