import { builtText } from '#databases/drivers/postgres/sql/composite-values.ts'
import { boundedWork } from '#databases/drivers/postgres/sql/relation-limit.ts'
import { writeRowCheck } from '#databases/drivers/postgres/sql/row-check.ts'
import {
  type BuiltSql,
  bind,
  columnText,
  createSql,
  type SqlBuilder,
  tableText,
} from '#databases/drivers/postgres/sql/sql-builder.ts'
import { writeText } from '#databases/drivers/postgres/sql/values.ts'
import { writeWhere } from '#databases/drivers/postgres/sql/where.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'
import { fail } from '#databases/failures.ts'
import { allColumns } from '#databases/plan/all-columns.ts'
import { castText } from '#databases/plan/casts.ts'
import type { Column, Table } from '#databases/plan/catalogue.ts'
import type {
  ChangePlan,
  CountPlan,
  DeletePlan,
  Output,
  ReadPlan,
  UpdatePlan,
  WritePlan,
} from '#databases/plan/plan.ts'
import type { Json, Sort } from '#databases/request/request.ts'

/**
 * Writes plans as statements of PostgreSQL. Names are quoted (drivers/quote-name.ts), every value is a bound parameter. The text depends
 * only on the shape of the plan, so that prepared statements are reused: a list is one array parameter, and names of the returned members
 * are not in the text. Limits (checked integers) are in the text, because the planner needs them. Functions and types have their schema, so
 * that objects of the client's database cannot replace them; operators between a column and a value are found by the client's search path
 * (docs/decisions/0026-names-with-their-schema.md).
 */

/**
 * Selects the rows of a plan, and one more for an open page, to know whether there are more. `source`: the FROM item; `relationRows`: the
 * most rows that a relation aggregates into one.
 */
export function selectSql(
  plan: ReadPlan,
  source: (sql: SqlBuilder) => string = () => `${tableText(plan.table)} as t`,
  relationRows = Number.POSITIVE_INFINITY,
): BuiltSql {
  const sql = { ...createSql('select '), relationRows }
  writeOutput(sql, plan)
  sql.text += ` from ${source(sql)}`
  writeWhere(sql, plan.where)
  writeSort(sql, 't', plan.sort)
  const { limit, offset, open } = plan.request.page
  writeRange(sql, open ? limit + 1 : limit, offset)
  return sql
}

export function countSql(plan: Pick<CountPlan, 'table' | 'where'>): BuiltSql {
  const sql = createSql(`select pg_catalog.count(*) as count from ${tableText(plan.table)} as t`)
  writeWhere(sql, plan.where)
  return sql
}

/** The planner's estimate of the same rows. */
export function explainSql(plan: Pick<CountPlan, 'table' | 'where'>): BuiltSql {
  const sql = createSql(`explain (format json) select 1 from ${tableText(plan.table)} as t`)
  writeWhere(sql, plan.where)
  return sql
}

export function updateSql(plan: UpdatePlan, relationRows = Number.POSITIVE_INFINITY): BuiltSql {
  const sql = { ...createSql(isOrdered(plan) ? 'with t as (' : ''), relationRows }
  sql.text += `update ${tableText(plan.table)} as t set `
  plan.set.forEach(({ column, value }, index) => {
    sql.text += `${index > 0 ? ', ' : ''}${quoteName(column.name)} = `
    sql.text += writtenText(sql, column, value)
  })
  return finishWrite(sql, plan)
}

export function deleteSql(plan: DeletePlan, relationRows = Number.POSITIVE_INFINITY): BuiltSql {
  const sql = { ...createSql(isOrdered(plan) ? 'with t as (' : ''), relationRows }
  sql.text += `delete from ${tableText(plan.table)} as t`
  return finishWrite(sql, plan)
}

/** RETURNING has no order. For a sorted result the write becomes a CTE. */
const isOrdered = (plan: ChangePlan): boolean => plan.sort.length > 0 && !plan.request.head

function finishWrite(sql: SqlBuilder, plan: ChangePlan): BuiltSql {
  const { limit, offset } = plan.request
  if (limit === undefined && offset === 0) writeWhere(sql, plan.where)
  else writeChoice(sql, plan)
  if (!isOrdered(plan)) {
    writeReturning(sql, plan)
    return sql
  }
  sql.text += ' returning t.*'
  if (plan.kind === 'update' && plan.check !== undefined) {
    sql.text += ', '
    writeRowCheck(sql, plan.check)
  }
  sql.text += ') select '
  writeOutput(sql, plan)
  sql.text += ' from t'
  writeSort(sql, 't', plan.sort)
  return sql
}

/**
 * A write with limit or offset first chooses and locks its rows. It names them by primary key, because a row that another transaction has
 * just updated keeps its key but not its ctid; without a unique key, by ctid.
 */
function writeChoice(sql: SqlBuilder, plan: ChangePlan): void {
  const keys = rowKey(plan.table)
  // ctid is not a column of the client's table.
  const among = hasOwnKey(plan.table) ? 'in' : 'operator(pg_catalog.=) any'
  sql.text += ` where (${keys.map((key) => `t.${key}`).join(', ')}) ${among} (select ${keys.map((key) => `t.${key}`).join(', ')}`
  sql.text += ` from ${tableText(plan.table)} as t`
  writeWhere(sql, plan.where)
  writeSort(sql, 't', plan.sort)
  writeRange(sql, plan.request.limit, plan.request.offset)
  sql.text += ' for update)'
}

const hasOwnKey = (table: Table): boolean => table.primaryKey.length > 0 && table.hasChildren !== true

function rowKey(table: Table): string[] {
  if (hasOwnKey(table)) return table.primaryKey.map(quoteName)
  if (table.kind === 'table' || table.kind === 'partitioned table') return ['tableoid', 'ctid']
  throw fail('not_supported', { hint: 'limit and offset of a write need a table, or a primary key.' })
}

/** The check is no member of the rows: it is after all that are. */
export function writeReturning(sql: SqlBuilder, plan: WritePlan): void {
  const { head } = plan.request
  const check = plan.kind === 'delete' ? undefined : plan.check
  if (head && check === undefined) return
  sql.text += ' returning '
  if (!head) writeOutput(sql, plan)
  if (check === undefined) return
  if (!head) sql.text += ', '
  writeRowCheck(sql, check)
}

function writeOutput(sql: SqlBuilder, { table, output, request }: ReadPlan | WritePlan): void {
  const { text, members } =
    output === allColumns(table)
      ? allColumnsText(sql, output)
      : outputListText(sql, output, request.stripNulls)
  sql.text += text
  sql.members = members
}

type OutputText = { readonly text: string; readonly members: readonly string[] }

const outputListText = (sql: SqlBuilder, output: readonly Output[], stripNulls: boolean): OutputText => ({
  text: output.map((item) => outputText(sql, 't', item, stripNulls, false)).join(', '),
  members: output.map((item) => item.as),
})

/** Written once for each table: a column has the same text in every statement. */
function allColumnsText(sql: SqlBuilder, output: readonly Output[]): OutputText {
  const known = TEXTS.get(output)
  if (known !== undefined) return known
  const written = outputListText(sql, output, false)
  TEXTS.set(output, written)
  return written
}

const TEXTS = new WeakMap<readonly Output[], OutputText>()

/** `nested`: inside a relation the database writes the JSON, and timestamps must have the same form as at the top level (rows.ts). */
function outputText(
  sql: SqlBuilder,
  alias: string,
  item: Output,
  stripNulls: boolean,
  nested: boolean,
): string {
  if (item.kind === 'relation') {
    const text = relationText(sql, alias, item, stripNulls)
    return nested ? text : boundedWork(sql, alias, item, text)
  }
  const { column, cast } = item
  const text = columnText(alias, column)
  const base = cast === undefined ? column.base : cast
  const value = cast === undefined ? text : `${text}::${castText(cast)}`
  if (base === '_timestamptz' || base === 'timestamptz[]' || (nested && base === 'timestamptz'))
    return `pg_catalog.replace(pg_catalog.to_json(${value})::pg_catalog.text, '+00:00"', 'Z"')::pg_catalog.json`
  // Each line is a row of a relation, so line breaks in stored JSON are replaced.
  if (nested && (cast === undefined ? mayHoldLines(column) : base === 'json' || base === 'json[]'))
    return `pg_catalog.translate(pg_catalog.to_json(${value})::pg_catalog.text, e'\\n', ' ')::pg_catalog.json`
  const composed =
    cast === undefined ? column.category === 'A' || column.category === 'C' : cast.endsWith('[]')
  return composed && !nested ? `pg_catalog.to_json(${value})` : value
}

/** Stored JSON may contain line breaks, also inside a user-defined type, and user-defined casts may write them. */
const mayHoldLines = ({ base, category, cast }: Column): boolean =>
  base === 'json' || base === '_json' || ('ACU'.includes(category) && !cast.startsWith('pg_catalog.'))

function relationText(
  sql: SqlBuilder,
  outer: string,
  item: Extract<Output, { kind: 'relation' }>,
  stripNulls: boolean,
): string {
  const alias = `t${++sql.aliases}`
  const { table, many, on } = item.relation
  const members = item.columns.map(
    (inner) => `${outputText(sql, alias, inner, stripNulls, true)} as ${quoteName(inner.as)}`,
  )
  const joined = on
    .map((pair) => `${columnText(alias, pair.inner)} = ${columnText(outer, pair.outer)}`)
    .join(' and ')
  // A foreign key references rows of the table itself; rows of child tables may have the same key.
  const only = !many && table.hasChildren ? 'only ' : ''
  // `r.*`, because an alias may be called r as well.
  const rows = `select ${members.join(', ')} from ${only}${tableText(table)} as ${alias} where ${joined}`
  const row = stripNulls
    ? `(select coalesce(pg_catalog.json_object_agg(e.key, e.value), '{}') from pg_catalog.json_each(pg_catalog.row_to_json(r.*)) as e where e.value::pg_catalog.text operator(pg_catalog.<>) 'null')`
    : 'pg_catalog.row_to_json(r.*)'
  // Each row begins a line, which nothing else in JSON without white space does: so they are counted (rows.ts).
  const line = `pg_catalog.concat(e'\\n', ${row}::pg_catalog.text)`
  if (!many) return `(select ${line}::pg_catalog.json from (${rows} limit 1) as r)`
  const limit = Number.isFinite(sql.relationRows) ? ` limit ${limitText(sql.relationRows)}` : ''
  const lines = `pg_catalog.concat('[', pg_catalog.string_agg(${line}, ','), ']')::pg_catalog.json`
  return `(select ${lines} from (${rows}${limit}) as r)`
}

function writeRange(sql: SqlBuilder, limit: number | undefined, offset: number): void {
  if (limit !== undefined) sql.text += ` limit ${limitText(limit)}`
  if (offset > 0) sql.text += ` offset ${bind(sql, String(offset))}`
}

/** The only number that is written into the text, so it is checked to be an integer. */
function limitText(limit: number): string {
  if (!Number.isSafeInteger(limit) || limit < 0) throw fail('invalid_limit')
  return String(limit)
}

function writeSort(sql: SqlBuilder, alias: string, sort: readonly Sort<Column>[]): void {
  sort.forEach(({ column, descending, nulls }, index) => {
    sql.text += index === 0 ? ' order by ' : ', '
    sql.termPositions.push({ at: sql.text.length, column })
    sql.text += `${columnText(alias, column)}${descending ? ' desc' : ''}${nulls ? ` nulls ${nulls}` : ''}`
  })
}

/** The expression of a value to write into a column. */
export function writtenText(sql: SqlBuilder, column: Column, value: Json): string {
  const parameter = bind(sql, writeText(value, column), column)
  return builtText(column, [value], parameter) ?? parameter
}
