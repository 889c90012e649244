import { castText } from '#databases/casts.ts'
import type { Column } from '#databases/catalogue.ts'
import { bind, columnText, type Draft } from '#databases/draft.ts'
import { fail } from '#databases/failures.ts'
import type { Comparison, Condition, Json } from '#databases/plan.ts'
import { arrayText, conditionText } from '#databases/values.ts'

export function writeWhere(sql: Draft, where: Condition<Column> | undefined): void {
  if (where === undefined) return
  sql.text += ' where '
  writeCondition(sql, where)
}

function writeCondition(sql: Draft, condition: Condition<Column>): void {
  if (condition.kind === 'compare') {
    sql.spots.push({ at: sql.text.length, column: condition.column })
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

const infix = {
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

function comparisonText(sql: Draft, condition: Comparison<Column>): string {
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
  return `${left} ${infix[operator]} ${bind(sql, conditionText(value, condition), column)}${cast}`
}

/** The only words that stand in a text because of a value: four, written down here. */
function truthOf(value: Json): string {
  const word = truths.find((known) => known === value)
  if (word === undefined) throw fail('invalid_condition')
  return word
}

const truths = ['null', 'true', 'false', 'unknown'] as const

/** One array parameter whatever the length; a null in the list is found by `is null`, as in eq. */
function membershipText(sql: Draft, condition: Comparison<Column>, left: string, cast: string): string {
  // The grammar gives `in` a list only (conditions.ts).
  const items = condition.value as readonly Json[]
  const given = items.filter((item) => item !== null).map((item) => conditionText(item, condition))
  const text = `${left} = any(${bind(sql, arrayText(given), condition.column)}${cast && `${cast}[]`})`
  return given.length === items.length ? text : `(${text} or ${left} is null)`
}
