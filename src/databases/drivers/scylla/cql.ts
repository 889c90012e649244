import { quoteName } from '#databases/drivers/quote-name.ts'
import { type ScyllaColumn, type ScyllaTable, tableOf } from '#databases/drivers/scylla/catalogue.ts'
import type { Binding, Statement } from '#databases/drivers/scylla/session.ts'
import { fail, unsupported } from '#databases/failures.ts'
import type { Column } from '#databases/plan/catalogue.ts'
import type { CountPlan, Output, ReadPlan } from '#databases/plan/plan.ts'
import type { Comparison, Condition, Json, Sort } from '#databases/request/request.ts'

/**
 * Writes plans as CQL. Names of the catalogue are quoted (drivers/quote-name.ts), every value is bound. The text depends only on the shape
 * of the plan, so that servers prepare it once.
 */
export const cannot = (operation: string) => unsupported('scylladb', operation)

const qualified = (table: ScyllaTable): string => `${quoteName(table.keyspace)}.${quoteName(table.name)}`

type CqlBuilder = { text: string; readonly bindings: Binding[] }

function bind(sql: CqlBuilder, value: Json | undefined, column: string): string {
  sql.bindings.push({ value, column })
  return '?'
}

/** Selects the rows of a plan, and one more for an open page, to know whether there are more. */
export function selectText(plan: ReadPlan): Statement {
  const table = tableOf(plan)
  const sql: CqlBuilder = {
    text: `select ${plan.output.map(outputColumn).join(', ')} from ${qualified(table)}`,
    bindings: [],
  }
  writeWhere(sql, table, plan.where)
  writeSort(sql, table, plan)
  const { limit, open } = plan.request.page
  sql.text += ` limit ${bind(sql, open ? limit + 1 : limit, 'limit')}`
  return sql
}

export function countText(plan: Pick<CountPlan, 'table' | 'where'>): Statement {
  const table = tableOf(plan)
  const sql: CqlBuilder = { text: `select count(*) from ${qualified(table)}`, bindings: [] }
  writeWhere(sql, table, plan.where)
  return sql
}

/** Columns are identified by position, not by name, so that members of the result may have any names. */
const outputColumn = (item: Output, index: number): string => `${quoteName(columnOf(item).name)} as c${index}`

export function columnOf(item: Output): Column {
  if (item.kind === 'relation') throw cannot('relations')
  if (item.cast !== undefined) throw cannot('casts')
  return item.column
}

function writeWhere(sql: CqlBuilder, table: ScyllaTable, where: Condition<Column> | undefined): void {
  comparisonsOf(where).forEach((comparison, index) => {
    sql.text += index === 0 ? ' where ' : ' and '
    sql.text += comparisonText(sql, table, comparison)
  })
}

/** CQL joins conditions only by AND. */
export function comparisonsOf(where: Condition<Column> | undefined): Comparison<Column>[] {
  if (where === undefined) return []
  if (where.kind === 'compare') return [where]
  if (where.kind === 'not') throw cannot('not')
  if (where.kind === 'any' && where.terms.length > 1) throw cannot('or')
  return where.terms.flatMap(comparisonsOf)
}

/**
 * Every combination of values of `in` lists is a separate look-up, and the coordinator holds all results at once: three thousand by three
 * thousand crash every node that gets them.
 */
export function requireFewLookUps(where: Condition<Column> | undefined, max: number): void {
  const lists = comparisonsOf(where).flatMap(({ operator, value }) =>
    operator === 'in' && Array.isArray(value) ? [value.length] : [],
  )
  requireFewCombinations(productOf(lists), max)
}

export const productOf = (lengths: readonly number[]): number =>
  lengths.reduce((product, length) => product * length, 1)

export function requireFewCombinations(combinations: number, max: number): void {
  if (combinations <= max) return
  throw fail('too_complex', {
    message: `The lists of in have ${combinations} combinations, at most ${max} are possible`,
    hint: 'Ask for fewer values at once (limits.in_product).',
    details: { combinations, most: max },
  })
}

const SYMBOLS = new Map([
  ['eq', '='],
  ['gt', '>'],
  ['gte', '>='],
  ['lt', '<'],
  ['lte', '<='],
])

function comparisonText(sql: CqlBuilder, table: ScyllaTable, comparison: Comparison<Column>): string {
  const { column, operator, value, columnCast, valueCast } = comparison
  if (columnCast !== undefined || valueCast !== undefined) throw cannot('casts')
  const symbol = SYMBOLS.get(operator)
  if (symbol === undefined && operator !== 'in' && operator !== 'contains')
    throw cannot(`the operator ${operator}`)
  if (value === null || (Array.isArray(value) && value.includes(null))) throw cannot('conditions with null')
  requireReachable(table, column as ScyllaColumn) // of this driver's catalogue
  const name = quoteName(column.name)
  if (operator === 'in') return `${name} in ${bind(sql, value, column.name)}`
  if (operator === 'contains') return containsText(sql, column, value)
  return `${name} ${symbol} ${bind(sql, value, column.name)}`
}

/** All items of a list; an object names entries of a map. */
function containsText(sql: CqlBuilder, column: Column, value: Json): string {
  const name = quoteName(column.name)
  if (Array.isArray(value))
    return (
      value.map((item) => `${name} contains ${bind(sql, item, column.name)}`).join(' and ') || noTerms(column)
    )
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value))
    return `${name} contains ${bind(sql, value, column.name)}`
  const entries = Object.entries(value)
  return (
    entries
      .map(([key, item]) => `${name}[${bind(sql, key, column.name)}] = ${bind(sql, item, column.name)}`)
      .join(' and ') || noTerms(column)
  )
}

function noTerms(column: Column): never {
  throw fail('invalid_condition', { hint: 'contains needs a value.', details: { column: column.name } })
}

/** For other conditions the server would have to scan the table, which it does only with ALLOW FILTERING. */
function requireReachable(table: ScyllaTable, column: ScyllaColumn): void {
  if (column.isIndexed || table.primaryKey.includes(column.name)) return
  throw cannot(`conditions on column ${column.name}, which is neither part of the primary key nor indexed`)
}

function writeSort(sql: CqlBuilder, table: ScyllaTable, { sort, where }: ReadPlan): void {
  for (const { column, nulls } of sort) {
    if (!table.clusteringKey.includes(column.name)) throw cannot(`sorting by column ${column.name}`)
    if (nulls !== undefined) throw cannot('sorting of nulls')
  }
  if (sort.length === 0 || comesSorted(table, sort, where)) return
  const terms = sort.map(
    ({ column, descending }) => `${quoteName(column.name)} ${descending ? 'desc' : 'asc'}`,
  )
  sql.text += ` order by ${terms.join(', ')}`
}

/** Rows of one partition are stored in its order. ORDER BY would have no effect, and is not allowed with an index. */
function comesSorted(
  { partitionKey, clusteringKey, descending }: ScyllaTable,
  sort: readonly Sort<Column>[],
  where: Condition<Column> | undefined,
): boolean {
  const fixed = new Set(
    comparisonsOf(where).flatMap(({ operator, column }) => (operator === 'eq' ? [column.name] : [])),
  )
  const isOnePartition = partitionKey.every((name) => fixed.has(name))
  return (
    isOnePartition &&
    sort.every(
      (item, index) =>
        item.column.name === clusteringKey[index] && item.descending === descending.has(item.column.name),
    )
  )
}

/** A row by column; columns that it does not name stay unchanged, or null. */
export type ColumnValues = ReadonlyMap<string, Json>

/** Selects rows of one partition by their keys; with clustering columns, several at once. */
export function byKeysText(
  table: ScyllaTable,
  output: readonly Output[],
  keys: readonly ColumnValues[],
): Statement {
  const { primaryKey, partitionKey, clusteringKey } = table
  const named = primaryKey.map((name, index) => `${quoteName(name)} as k${index}`)
  const sql: CqlBuilder = {
    text: `select ${[...named, ...output.map(outputColumn)].join(', ')} from ${qualified(table)}`,
    bindings: [],
  }
  const [first = new Map()] = keys
  writeKey(sql, partitionKey, first)
  if (clusteringKey.length === 0) return sql
  const clustering = keys.map((key) => clusteringKey.map((name) => key.get(name) ?? null))
  sql.text += ` and (${clusteringKey.map(quoteName).join(', ')}) in ${bind(sql, clustering, clusteringKey.join(', '))}`
  return sql
}

function writeKey(sql: CqlBuilder, names: readonly string[], row: ColumnValues): void {
  names.forEach((name, index) => {
    sql.text += `${index === 0 ? ' where' : ' and'} ${quoteName(name)} = ${bind(sql, row.get(name), name)}`
  })
}

/** `isNew`: only if the row does not exist. */
export function insertText(
  table: ScyllaTable,
  columns: readonly string[],
  row: ColumnValues,
  isNew: boolean,
): Statement {
  const sql: CqlBuilder = {
    text: `insert into ${qualified(table)} (${columns.map(quoteName).join(', ')}) values (`,
    bindings: [],
  }
  sql.text += columns.map((name) => bind(sql, row.get(name), name)).join(', ')
  sql.text += isNew ? ') if not exists' : ')'
  return sql
}

/** CQL's UPDATE creates a missing row; IF EXISTS prevents that. */
export function updateText(table: ScyllaTable, set: ColumnValues, row: ColumnValues): Statement {
  const sql: CqlBuilder = { text: `update ${qualified(table)} set `, bindings: [] }
  sql.text += [...set].map(([name, value]) => `${quoteName(name)} = ${bind(sql, value, name)}`).join(', ')
  writeKey(sql, table.primaryKey, row)
  sql.text += ' if exists'
  return sql
}

export function deleteText(table: ScyllaTable, row: ColumnValues): Statement {
  const sql: CqlBuilder = { text: `delete from ${qualified(table)}`, bindings: [] }
  writeKey(sql, table.primaryKey, row)
  sql.text += ' if exists'
  return sql
}
