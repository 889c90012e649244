import type { Column } from '#databases/catalogue.ts'
import { comparisons } from '#databases/conditions.ts'
import type { RowsAnswer } from '#databases/drivers/driver.ts'
import type { Subject } from '#databases/drivers/supabase/errors.ts'
import type { Answer, Exchange } from '#databases/drivers/supabase/exchange.ts'
import {
  conditionTerm,
  pathOf,
  quoteName,
  requireDistinct,
  selectList,
} from '#databases/drivers/supabase/grammar.ts'
import type { OpenApiCatalogue } from '#databases/drivers/supabase/openapi.ts'
import { shaped, whole } from '#databases/drivers/supabase/rows.ts'
import { tooManyRelated } from '#databases/drivers/too-large.ts'
import { fail } from '#databases/failures.ts'
import type { Condition, CountPlan, Output, ReadPlan, Sort } from '#databases/plan.ts'

/** The most rows that this backend is known to give. */
export type Seen = { rows: number }
/** No backend is set to give fewer. */
export const fewest = 100

export type Reader = {
  readonly exchange: Exchange
  readonly catalogue: OpenApiCatalogue
  readonly seen: Seen
  /** Rows of an answer with those of their relations (`gateway.max_rows`). */
  readonly maxRows: number
}

export async function selectRows(reader: Reader, plan: ReadPlan): Promise<RowsAnswer> {
  const { head, page } = plan
  const asked = head ? 0 : page.limit + (page.open ? 1 : 0)
  const answer = await ask(reader, plan, { limit: asked, offset: page.offset })
  const count = countOf(answer)
  if (
    plan.output.some(({ kind }) => kind === 'relation') &&
    rowsIn(answer.value, plan.output) > reader.maxRows
  )
    throw tooManyRelated(reader.maxRows)
  const total = plan.count === undefined ? undefined : totalOf(answer)
  const isCut = count < asked && (await hasMore(reader, plan, count, total))
  return whole(shaped(answer.text, count, page.limit, plan), {
    rows: Math.min(count, page.limit),
    hasMore: isCut || (page.open && count > page.limit),
    total,
  })
}

/**
 * PostgREST may be told to give no more than so many rows (db-max-rows), and does not say when it did. An answer that is smaller
 * than one seen before was not cut; behind any other it is looked for one row more.
 */
async function hasMore(
  reader: Reader,
  plan: ReadPlan,
  count: number,
  total: number | undefined,
): Promise<boolean> {
  const { seen } = reader
  const next = plan.page.offset + count
  if (plan.count === 'exact' && total !== undefined) return next < total
  if (count < seen.rows) return false
  seen.rows = count
  return countOf(await ask(reader, { ...plan, count: undefined }, { limit: 1, offset: next })) > 0
}

/** Rows, and those of their relations: PostgREST gives a list, an object or null for one. */
function rowsIn(value: unknown, output: readonly Output[]): number {
  if (Array.isArray(value)) return value.reduce<number>((sum, row) => sum + rowsIn(row, output), 0)
  if (typeof value !== 'object' || value === null) return 0
  const members = value as Readonly<Record<string, unknown>>
  return output.reduce(
    (sum, item) => (item.kind === 'relation' ? sum + rowsIn(members[item.as], item.columns) : sum),
    1,
  )
}

type Part = { readonly limit: number; readonly offset: number }

function ask({ exchange, catalogue }: Reader, plan: ReadPlan, part: Part): Promise<Answer> {
  const { table, output, where, sort, count } = plan
  requireDistinct(plan)
  const columns = selectList(catalogue, table, output)
  return exchange.run(
    table.schema,
    (client) => {
      const rows = client.from(pathOf(table.name)).select(columns, count && { count })
      return paged(sorted(filtered(rows, where), sort), part)
    },
    aboutConditions(plan),
  )
}

/** What the library's builders have in common. */
type Filterable<T> = { or(filters: string): T }
type Sortable<T> = { order(column: string, options: { ascending: boolean; nullsFirst?: boolean }): T }
type Pageable<T> = { limit(count: number): T; range(from: number, to: number): T }

/** The whole condition in one parameter, where names can be quoted. */
export const filtered = <T extends Filterable<T>>(rows: T, where: Condition<Column> | undefined): T =>
  where === undefined ? rows : rows.or(conditionTerm(where))

export const sorted = <T extends Sortable<T>>(rows: T, sort: readonly Sort<Column>[]): T =>
  sort.reduce(
    (ordered, { column, descending, nulls }) =>
      ordered.order(quoteName(column.name), {
        ascending: !descending,
        ...(nulls && { nullsFirst: nulls === 'first' }),
      }),
    rows,
  )

export const paged = <T extends Pageable<T>>(rows: T, { limit, offset }: Part): T =>
  limit === 0 ? rows.limit(0) : rows.range(offset, offset + limit - 1)

export async function countRows(exchange: Exchange, plan: CountPlan): Promise<number> {
  const { table, where, mode } = plan
  const answer = await exchange.run(
    table.schema,
    // Not HEAD, whose answer cannot say what is wrong with a condition.
    (client) => filtered(client.from(pathOf(table.name)).select('*', { count: mode }), where).limit(0),
    aboutConditions(plan),
  )
  return totalOf(answer)
}

export function countOf({ value }: Answer): number {
  if (!Array.isArray(value)) throw unexpected('rows')
  return value.length
}

export function totalOf({ total }: Answer): number {
  if (total === undefined) throw unexpected('a count')
  return total
}

const unexpected = (what: string) =>
  fail('database_error', { cause: new Error(`The backend has answered without ${what}`) })

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
