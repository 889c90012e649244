import { conditionText } from '#databases/drivers/postgres/sql/values.ts'
import type { OpenApiCatalogue } from '#databases/drivers/supabase/openapi.ts'
import type { Parameter } from '#databases/drivers/supabase/request.ts'
import { unsupported } from '#databases/failures.ts'
import type { Column, Table } from '#databases/plan/catalogue.ts'
import type { Output, ReadPlan } from '#databases/plan/plan.ts'
import { comparisons } from '#databases/request/conditions.ts'
import type { Comparison, Condition, Json, Sort } from '#databases/request/request.ts'
import { quote } from '#databases/request/scanner.ts'

/**
 * Writes plans in the grammar of PostgREST's URLs. Every name and value is quoted, so that reserved characters (`,.:()` and more) have no
 * meaning in them. PostgREST reads both by one rule, with escapes since version 9. An older one takes an escaped quote for the end of the
 * text or, after the backslash, for the start of another, and refuses the request.
 * https://docs.postgrest.org/en/v13/references/api/url_grammar.html
 */

export const refuse = (operation: string) => unsupported('supabase', operation)

/** The name as one path segment. URLs resolve `.` and `..`, also percent-encoded, so such names are refused. */
export function pathSegment(name: string): string {
  if (/^\.*$/.test(name.trim())) throw refuse('names of dots and spaces')
  return encodeURIComponent(name)
}

/** The condition as one `or` parameter. In its value, unlike in the name of a parameter, column names can be quoted. */
export const conditionParameters = (where: Condition<Column> | undefined): readonly Parameter[] =>
  where === undefined ? [] : [['or', `(${conditionTerm(where)})`]]

function conditionTerm(condition: Condition<Column>): string {
  if (condition.kind === 'compare') return comparisonTerm(condition)
  if (condition.kind === 'not') return `not.and(${conditionTerm(condition.term)})`
  return `${condition.kind === 'all' ? 'and' : 'or'}(${condition.terms.map(conditionTerm).join(',')})`
}

const POSTGREST_OPERATORS = {
  eq: 'eq',
  neq: 'neq',
  gt: 'gt',
  gte: 'gte',
  lt: 'lt',
  lte: 'lte',
  like: 'like',
  ilike: 'ilike',
  contains: 'cs',
  containedBy: 'cd',
  overlaps: 'ov',
  fts: 'wfts',
} as const

function comparisonTerm(comparison: Comparison<Column>): string {
  const { column, operator, value, columnCast, valueCast } = comparison
  if (columnCast !== undefined || valueCast !== undefined) throw refuse('casts in conditions')
  const name = quote(column.name)
  // conditions.ts admits only null, true, false and unknown, so the value needs no quotes.
  if (operator === 'is') return `${name}.is.${value}`
  if (operator === 'in') return membershipTerm(name, comparison)
  const text = conditionText(value, comparison)
  if (text === null) return nullTerm(name, comparison)
  if ((operator === 'like' || operator === 'ilike') && text.includes('*'))
    throw refuse('like with an asterisk, because PostgREST reads it as a percent sign')
  return `${name}.${POSTGREST_OPERATORS[operator]}.${quote(text)}`
}

function nullTerm(name: string, { operator }: Comparison<Column>): string {
  if (operator === 'eq') return `${name}.is.null`
  if (operator === 'neq') return `${name}.not.is.null`
  throw refuse(`${operator} with null`)
}

function membershipTerm(name: string, comparison: Comparison<Column>): string {
  // conditions.ts gives `in` only lists.
  const items = comparison.value as readonly Json[]
  const texts = items.map((item) => conditionText(item, comparison)).filter((text) => text !== null)
  // PostgREST reads a list of one empty text as an empty list.
  const [only] = texts
  const term =
    texts.length === 1 && only === '' ? `${name}.eq.""` : `${name}.in.(${texts.map(quote).join(',')})`
  return texts.length === items.length ? term : `or(${term},${name}.is.null)`
}

export const orderParameters = (sort: readonly Sort<Column>[]): readonly Parameter[] =>
  sort.length === 0 ? [] : [['order', sort.map(orderTerm).join(',')]]

const orderTerm = ({ column, descending, nulls }: Sort<Column>): string =>
  `${quote(column.name)}.${descending ? 'desc' : 'asc'}${nulls ? `.nulls${nulls}` : ''}`

/** The rows from `offset` on, at most `limit`. */
export type RowRange = { readonly limit: number; readonly offset: number }

export const rangeParameters = ({ limit, offset }: RowRange): readonly Parameter[] =>
  limit === 0
    ? [['limit', '0']]
    : [
        ['offset', String(offset)],
        ['limit', String(limit)],
      ]

export const nameList = (columns: readonly Column[]): string =>
  columns.map(({ name }) => quote(name)).join(',')

/** `"as":"column"::cast` and `"as":"table"!"key"(…)`. */
export function selectList(catalogue: OpenApiCatalogue, table: Table, output: readonly Output[]): string {
  return output
    .map((item) => (item.kind === 'column' ? columnItem(item) : relationItem(catalogue, table, item)))
    .join(',')
}

function columnItem({ as, column, cast }: Extract<Output, { kind: 'column' }>): string {
  const name = as === column.name ? quote(as) : `${quote(as)}:${quote(column.name)}`
  return cast === undefined ? name : `${name}::${castName(cast)}`
}

/** PostgREST takes only types of one word. Of the types in casts.ts, only `double precision` has two. */
function castName(cast: string): string {
  if (cast.endsWith('[]')) throw refuse('casts to arrays')
  return cast === 'double precision' ? 'float8' : cast
}

function relationItem(
  catalogue: OpenApiCatalogue,
  outer: Table,
  { as, relation, columns }: Extract<Output, { kind: 'relation' }>,
): string {
  const { table: inner, many, on } = relation
  // The catalogue of this driver has only keys of one column.
  const [pair] = on
  if (pair === undefined) throw refuse('relations without a key')
  const key = (many ? pair.inner : pair.outer).name
  // PostgREST names a many-to-one relation of a table to itself by the key, and others by the table with the key as a hint.
  const isParent = inner === outer && !many
  const target = isParent ? key : inner.name
  requireUnambiguous(catalogue, outer, target, key)
  const hint = isParent ? '' : `!${quote(key)}`
  return `${quote(as)}:${quote(target)}${hint}(${selectList(catalogue, inner, columns)})`
}

/**
 * Refuses a relation that PostgREST could resolve to another table than the catalogue did, because rights were checked for the table of the
 * catalogue. A function with the name of the target would take precedence ("computed relationship"), and a table with the name of the key
 * could be the junction of a many-to-many relation.
 */
function requireUnambiguous(catalogue: OpenApiCatalogue, outer: Table, target: string, key: string): void {
  if (catalogue.functions.has(target) || catalogue.find(outer.schema, key) !== undefined)
    throw refuse('a relation that PostgREST could confuse with a function or another table')
}

/** Refuses an alias that equals a column of a condition or of the order: PostgREST would confuse the two. */
export function requireDistinct({ output, where, sort }: Pick<ReadPlan, 'output' | 'where' | 'sort'>): void {
  const used = new Set([...comparisons(where), ...sort].map(({ column }) => column.name))
  const isTaken = (item: Output) =>
    used.has(item.as) && (item.kind === 'relation' || item.column.name !== item.as)
  if (output.some(isTaken)) throw refuse('an alias that is also a column of the conditions or the order')
}
