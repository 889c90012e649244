import { collectedRows } from '#databases/drivers/collected-rows.ts'
import type { RowsResult } from '#databases/drivers/driver.ts'
import type { Subject } from '#databases/drivers/supabase/errors.ts'
import { type Answer, type Exchange, strange } from '#databases/drivers/supabase/exchange.ts'
import {
  conditionParameters,
  orderParameters,
  pathSegment,
  type RowRange,
  rangeParameters,
  requireDistinct,
  selectList,
} from '#databases/drivers/supabase/grammar.ts'
import type { OpenApiCatalogue } from '#databases/drivers/supabase/openapi.ts'
import { shaped } from '#databases/drivers/supabase/rows.ts'
import { namesOneRow } from '#databases/plan/by-key.ts'
import type { Column } from '#databases/plan/catalogue.ts'
import type { CountPlan, ReadPlan } from '#databases/plan/plan.ts'
import { comparisons } from '#databases/request/conditions.ts'
import type { Condition, CountMode } from '#databases/request/request.ts'

/** Known bounds of the backend's row limit (db-max-rows), kept as long as its structure. */
export type RowLimit = {
  catalogue: OpenApiCatalogue | undefined
  /** It has returned this many rows. */
  rows: number
  /** It returns no more rows. */
  max: number
}
export const unknownRowLimit = (): RowLimit => ({
  catalogue: undefined,
  rows: 0,
  max: Number.POSITIVE_INFINITY,
})

type RowReader = {
  readonly exchange: Exchange
  readonly catalogue: OpenApiCatalogue
  readonly rowLimit: RowLimit
  /** The most rows of a result with those of relations (`gateway.max_rows`). */
  readonly maxRows: number
}

export async function selectRows(reader: RowReader, plan: ReadPlan): Promise<RowsResult> {
  const { head, page, count: mode } = plan.request
  const asked = head ? 0 : page.limit + (page.open ? 1 : 0)
  const answer = await ask(reader, plan, { limit: asked, offset: page.offset }, mode)
  const count = countOf(answer)
  if (count > asked) throw strange('with more rows than were asked for')
  const { json, longest } = await shaped(answer, count, { rows: page.limit, related: reader.maxRows }, plan)
  const total = mode === undefined ? undefined : totalOf(answer)
  if (mode === 'exact' && count > 0 && page.offset + count > Number(total))
    throw strange('with more rows than it counts')
  learn(reader, count, count === asked)
  const isCut = count < asked && (await hasMore(reader, plan, count, total))
  return collectedRows([json], {
    rows: Math.min(count, page.limit),
    // A relation's list that is as long as the row limit may have been cut too.
    hasMore: isCut || (page.open && count > page.limit) || longest >= reader.rowLimit.max,
    total,
  })
}

function learn({ rowLimit, catalogue }: RowReader, count: number, isAll: boolean): void {
  if (rowLimit.catalogue !== catalogue) Object.assign(rowLimit, unknownRowLimit(), { catalogue })
  if (count > rowLimit.max) rowLimit.max = Number.POSITIVE_INFINITY
  if (isAll) rowLimit.rows = Math.max(rowLimit.rows, count)
}

/**
 * PostgREST may limit rows (db-max-rows) and does not report when it did. An answer smaller than an earlier one was not cut, nor one that
 * can have only one row; after any other answer one more row is requested.
 */
async function hasMore(
  reader: RowReader,
  plan: ReadPlan,
  count: number,
  total: number | undefined,
): Promise<boolean> {
  const { rowLimit } = reader
  const next = plan.request.page.offset + count
  if (plan.request.count === 'exact' && total !== undefined) return next < total
  if (count === 0 || count < rowLimit.rows || namesOneRow(plan.table, plan.where)) return false
  rowLimit.rows = count
  const isCut = countOf(await ask(reader, plan, { limit: 1, offset: next })) > 0
  if (isCut) rowLimit.max = count
  return isCut
}

function ask(
  { exchange, catalogue }: RowReader,
  plan: ReadPlan,
  range: RowRange,
  count?: CountMode,
): Promise<Answer> {
  const { table, output, where, sort } = plan
  requireDistinct(plan)
  return exchange.run({
    schema: table.schema,
    method: 'GET',
    path: pathSegment(table.name),
    parameters: [
      ['select', selectList(catalogue, table, output)],
      ...conditionParameters(where),
      ...orderParameters(sort),
      ...rangeParameters(range),
    ],
    prefer: count === undefined ? [] : [`count=${count}`],
    subject: aboutConditions(plan),
  })
}

export async function countRows(exchange: Exchange, plan: CountPlan): Promise<number> {
  const { table, where, request } = plan
  const answer = await exchange.run({
    schema: table.schema,
    // Not HEAD, whose answer cannot describe an invalid condition.
    method: 'GET',
    path: pathSegment(table.name),
    parameters: [['select', '*'], ...conditionParameters(where), ['limit', '0']],
    prefer: [`count=${request.mode}`],
    subject: aboutConditions(plan),
  })
  return totalOf(answer)
}

export function countOf({ is }: Answer): number {
  if (is.kind !== 'rows') throw strange('without rows')
  return is.count
}

export function totalOf({ total }: Answer): number {
  if (total === undefined) throw strange('without a count')
  return total
}

const aboutConditions = ({ table, where }: Pick<ReadPlan, 'table' | 'where'>): Subject => ({
  table,
  written: [],
  ...comparedBy(where),
})

export function comparedBy(where: Condition<Column> | undefined): Pick<Subject, 'compared' | 'given'> {
  const terms = comparisons(where)
  return {
    compared: terms.map(({ column }) => column),
    given: (column) => terms.filter((term) => term.column === column).map(({ value }) => value),
  }
}
