import { arrayBytes } from '#databases/drivers/postgres/sql/array-bytes.ts'
import { builtText, isRecord, isRecords } from '#databases/drivers/postgres/sql/composite-values.ts'
import { bind, columnText, type SqlBuilder } from '#databases/drivers/postgres/sql/sql-builder.ts'
import { conditionText } from '#databases/drivers/postgres/sql/values.ts'
import { fail } from '#databases/failures.ts'
import { castText } from '#databases/plan/casts.ts'
import type { Column } from '#databases/plan/catalogue.ts'
import { isLeakproof } from '#databases/plan/leakproof.ts'
import type { Comparison, Condition, Json } from '#databases/request/request.ts'

export function writeWhere(sql: SqlBuilder, where: Condition<Column> | undefined): void {
  if (where === undefined) return
  sql.text += ' where '
  writeCondition(sql, where)
}

export function writeCondition(sql: SqlBuilder, condition: Condition<Column>, infix: Infix = INFIX): void {
  if (condition.kind === 'compare') {
    sql.termPositions.push({ at: sql.text.length, column: condition.column })
    sql.text += comparisonText(sql, condition, infix)
    return
  }
  if (condition.kind === 'all' && condition.isGuarded) {
    writeGuarded(sql, condition.terms)
    return
  }
  sql.text += condition.kind === 'not' ? 'not (' : '('
  const terms = condition.kind === 'not' ? [condition.term] : condition.terms
  terms.forEach((term, index) => {
    if (index > 0) sql.text += condition.kind === 'any' ? ' or ' : ' and '
    writeCondition(sql, term, infix)
  })
  sql.text += ')'
}

/**
 * The first term and the others, none of which is evaluated on a row outside of the first unless it is leakproof. CASE is the barrier: the
 * planner neither moves a term out of it nor tries it on the values of its statistics, which are of all rows (a subquery with `offset 0`
 * would allow that). The leakproof terms stay outside of it, where they can use an index, and so does the first.
 */
function writeGuarded(sql: SqlBuilder, [guard, ...others]: readonly Condition<Column>[]): void {
  if (guard === undefined) throw new Error('A guarded condition has terms')
  const [leakproof, leaky] = partition(others.flatMap(conjuncts), isLeakproof)
  sql.text += '('
  writeCondition(sql, guard)
  for (const term of leakproof) {
    sql.text += ' and '
    writeCondition(sql, term, SYSTEM_INFIX)
  }
  if (leaky.length > 0) {
    sql.text += ' and case when '
    writeCondition(sql, guard)
    sql.text += ' then '
    writeCondition(sql, { kind: 'all', terms: leaky })
    sql.text += ' else false end'
  }
  sql.text += ')'
}

const conjuncts = (condition: Condition<Column>): readonly Condition<Column>[] =>
  condition.kind === 'all' ? condition.terms.flatMap(conjuncts) : [condition]

type Infix = Readonly<Record<keyof typeof INFIX, string>>

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

/** Only PostgreSQL's own operators are known to be leakproof. */
const SYSTEM_INFIX: Infix = {
  ...INFIX,
  eq: 'operator(pg_catalog.=)',
  neq: 'operator(pg_catalog.<>)',
  gt: 'operator(pg_catalog.>)',
  gte: 'operator(pg_catalog.>=)',
  lt: 'operator(pg_catalog.<)',
  lte: 'operator(pg_catalog.<=)',
}

function comparisonText(sql: SqlBuilder, condition: Comparison<Column>, infix: Infix): string {
  const { column, operator, value, columnCast, valueCast } = condition
  const left = `${columnText('t', column)}${columnCast ? `::${castText(columnCast)}` : ''}`
  const cast = valueCast ? `::${castText(valueCast)}` : ''
  switch (operator) {
    case 'is':
      return `${left} is ${truthOf(value)}`
    case 'in':
      return membershipText(sql, condition, { left, cast, equals: infix.eq })
    case 'fts':
      return `${column.base === 'tsvector' ? left : `pg_catalog.to_tsvector(${left})`} operator(pg_catalog.@@) pg_catalog.websearch_to_tsquery(${bind(sql, conditionText(value, condition), column)})`
    case 'eq':
    case 'neq':
      if (value === null) return `${left} is ${operator === 'eq' ? '' : 'not '}null`
      break
  }
  const parameter = bind(sql, conditionText(value, condition), column)
  if (columnCast !== undefined || valueCast !== undefined)
    return `${left} ${infix[operator]} ${parameter}${cast}`
  return `${left} ${infix[operator]} ${builtText(column, [value], parameter) ?? typed(column, parameter)}`
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
function membershipText(
  sql: SqlBuilder,
  condition: Comparison<Column>,
  { left, cast, equals }: { readonly left: string; readonly cast: string; readonly equals: string },
): string {
  const { column, columnCast, valueCast } = condition
  // conditions.ts gives `in` only lists.
  const items = condition.value as readonly Json[]
  const given = items.filter((item) => item !== null)
  const isComposed = column.category === 'A' || column.category === 'C'
  const isCast = columnCast !== undefined || valueCast !== undefined
  const separator = isComposed || isCast ? undefined : column.separator
  const list = (some: readonly Json[]) =>
    bind(
      sql,
      arrayBytes(some, (item) => conditionText(item, condition), separator),
      column,
    )
  const text =
    isComposed && !isCast
      ? composedMembership(column, left, given, list)
      : `${left} ${equals} any(${list(given)}${cast && `${cast}[]`})`
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
