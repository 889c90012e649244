import { builtText, isRecord, isRecords } from '#databases/drivers/postgres/sql/composite-values.ts'
import { bind, columnText, type SqlBuilder } from '#databases/drivers/postgres/sql/sql-builder.ts'
import { arrayText, conditionText } from '#databases/drivers/postgres/sql/values.ts'
import { fail } from '#databases/failures.ts'
import { castText } from '#databases/plan/casts.ts'
import type { Column } from '#databases/plan/catalogue.ts'
import type { Comparison, Condition, Json } from '#databases/request/request.ts'

export function writeWhere(sql: SqlBuilder, where: Condition<Column> | undefined): void {
  if (where === undefined) return
  sql.text += ' where '
  writeCondition(sql, where)
}

export function writeCondition(sql: SqlBuilder, condition: Condition<Column>): void {
  if (condition.kind === 'compare') {
    sql.termPositions.push({ at: sql.text.length, column: condition.column })
    sql.text += comparisonText(sql, condition)
    return
  }
  sql.text += condition.kind === 'not' ? 'not (' : '('
  const terms = condition.kind === 'not' ? [condition.term] : condition.terms
  terms.forEach((term, index) => {
    if (index > 0) sql.text += condition.kind === 'any' ? ' or ' : ' and '
    writeCondition(sql, term)
  })
  sql.text += ')'
}

const INFIX = {
  eq: '=',
  neq: '<>',
  gt: '>',
  gte: '>=',
  lt: '<',
  lte: '<=',
  like: 'like',
  ilike: 'ilike',
  contains: '@>',
  containedBy: '<@',
  overlaps: '&&',
} as const

function comparisonText(sql: SqlBuilder, condition: Comparison<Column>): string {
  const { column, operator, value, columnCast, valueCast } = condition
  const left = `${columnText('t', column)}${columnCast ? `::${castText(columnCast)}` : ''}`
  const cast = valueCast ? `::${castText(valueCast)}` : ''
  switch (operator) {
    case 'is':
      return `${left} is ${truthOf(value)}`
    case 'in':
      return membershipText(sql, condition, left, cast)
    case 'fts':
      return `${column.base === 'tsvector' ? left : `pg_catalog.to_tsvector(${left})`} operator(pg_catalog.@@) pg_catalog.websearch_to_tsquery(${bind(sql, conditionText(value, condition), column)})`
    case 'eq':
    case 'neq':
      if (value === null) return `${left} is ${operator === 'eq' ? '' : 'not '}null`
      break
  }
  const parameter = bind(sql, conditionText(value, condition), column)
  if (columnCast !== undefined || valueCast !== undefined)
    return `${left} ${INFIX[operator]} ${parameter}${cast}`
  return `${left} ${INFIX[operator]} ${builtText(column, [value], parameter) ?? typed(column, parameter)}`
}

/** A record can be compared with records of any type, so the text needs a cast. */
const typed = ({ category, cast }: Column, text: string): string =>
  category === 'C' ? `${text}::${cast}` : text

/** The only values that are written into the text: null, true, false or unknown (conditions.ts). */
function truthOf(value: Json): string {
  const word = TRUTHS.find((known) => known === value)
  if (word === undefined) throw fail('invalid_condition')
  return word
}

const TRUTHS = ['null', 'true', 'false', 'unknown'] as const

/** `in` takes one array parameter of any length; a null in the list becomes `is null`, as in eq. */
function membershipText(sql: SqlBuilder, condition: Comparison<Column>, left: string, cast: string): string {
  const { column, columnCast, valueCast } = condition
  // conditions.ts gives `in` only lists.
  const items = condition.value as readonly Json[]
  const given = items.filter((item) => item !== null)
  const list = (some: readonly Json[]) =>
    bind(sql, arrayText(some.map((item) => conditionText(item, condition))), column)
  const isComposed = column.category === 'A' || column.category === 'C'
  const text =
    isComposed && columnCast === undefined && valueCast === undefined
      ? composedMembership(column, left, given, list)
      : `${left} = any(${list(given)}${cast && `${cast}[]`})`
  return given.length === items.length ? text : `(${text} or ${left} is null)`
}

/** PostgreSQL has no arrays of arrays (only more dimensions) and no arrays of arbitrary records, so the values are passed as texts. */
function composedMembership(
  column: Column,
  left: string,
  given: readonly Json[],
  list: (some: readonly Json[]) => string,
): string {
  const among = (some: readonly Json[]) => {
    const texts = `pg_catalog.unnest(${list(some)}::pg_catalog.text[]) as u(v)`
    return `${left} = any (select ${builtText(column, some, 'u.v') ?? `u.v::${column.cast}`} from ${texts})`
  }
  const [built, written] = partition(given, (item) => isRecord(column, item) || isRecords(column, item))
  return built.length > 0 && written.length > 0 ? `(${among(built)} or ${among(written)})` : among(given)
}

const partition = <T>(items: readonly T[], isFirst: (item: T) => boolean): readonly [T[], T[]] => [
  items.filter(isFirst),
  items.filter((item) => !isFirst(item)),
]
