import {
  type Comparison,
  type Condition,
  casts,
  columnAt,
  type Operand,
  type PatternPart,
  type Search,
  type Table,
  valueCasts,
} from './model.ts'
import {
  type Decimal,
  decimalText,
  doubleText,
  type JsonValue,
  type Kind,
  type KindName,
  kinds,
  type Value,
} from './values.ts'

/** Writes conditions as requests. A condition has many notations; `choose(n)` picks one of n for each place. */
export type Choose = (ways: number) => number

/** A value in a body, in a form that JSON.stringify writes as the intended text. */
export function jsonOf(name: KindName, value: Value | null, choose: Choose): unknown {
  if (value === null) return null
  switch (name) {
    case 'smallint':
    case 'integer':
    case 'bigint':
    case 'numeric':
    case 'fixed':
    case 'double': {
      const text = numberText(name, value)
      return /^-?\d/.test(text) && isExactNumber(text) && choose(2) === 0
        ? JSON.rawJSON(text)
        : textOf(name, value, choose)
    }
    case 'boolean':
      return choose(2) === 0 ? value : textOf(name, value, choose)
    case 'texts':
    case 'ints': {
      if (choose(2) === 0) return textOf(name, value, choose)
      const items = value as readonly (string | Decimal | null)[]
      return items.map((item) => (typeof item === 'object' ? jsonOf('integer', item, choose) : item))
    }
    default:
      return textOf(name, value, choose)
  }
}

/** Whether a JSON number preserves the text: it would lose trailing zeros of the fraction. */
const isExactNumber = (text: string): boolean => !/\.\d*0(?:e|$)/i.test(text)

const numberText = (name: KindName, value: Value): string =>
  name === 'double' ? doubleText(value as number) : textIn(name, value)

const textIn = (name: KindName, value: Value): string => (kinds[name] as Kind).text(value)

/** A value as a text that the database parses. */
export function textOf(name: KindName, value: Value, choose: Choose): string {
  const text = name === 'double' ? doubleText(value as number) : textIn(name, value)
  switch (name) {
    case 'numeric':
      return typeof value === 'object' && choose(3) === 0 ? withExponent(value as Decimal) : text
    case 'boolean':
      return [text, text.charAt(0), value === true ? 'on' : 'off'][choose(3)] ?? text
    case 'uuid':
      return choose(2) === 0 ? text.toUpperCase() : text
    case 'timestamp':
    case 'timestamptz':
      return inOtherForm(text, choose)
    default:
      return text
  }
}

const withExponent = ({ digits, scale }: Decimal): string => `${digits}e-${scale}`

function inOtherForm(text: string, choose: Choose): string {
  if (!/^\d{4}-/.test(text) || text.endsWith('BC') || choose(2) === 0) return text
  return text.replace(' ', 'T').replace(/\+00$/, 'Z')
}

/** JSON for a jsonb column, with the exact digits of numbers. */
export function jsonBody(value: JsonValue): unknown {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(jsonBody)
  if ('digits' in value) return JSON.rawJSON(decimalText(value))
  return Object.fromEntries([...value.members].map(([key, item]) => [key, jsonBody(item)]))
}

export const written = (name: KindName, value: Value | null, choose: Choose): unknown =>
  name === 'jsonb' && value !== null ? jsonBody(value as JsonValue) : jsonOf(name, value, choose)

// Conditions

/** Body members that express the condition. */
export function filterOf(
  table: Table,
  condition: Condition | undefined,
  choose: Choose,
): Record<string, unknown> {
  if (condition === undefined) return {}
  const terms = condition.kind === 'all' ? condition.terms : [condition]
  if (choose(4) === 0 && terms.every((term) => hasWhere(table, term)))
    return {
      where: Object.assign({}, ...terms.slice(0, 1).map((term) => whereOf(table, term, choose))),
      ...rest(table, terms.slice(1), choose),
    }
  if (choose(5) === 0) return { where_filters: terms.map((term) => conditionOf(table, term, choose)) }
  return { conditions: terms.map((term) => conditionOf(table, term, choose)) }
}

const rest = (table: Table, terms: readonly Condition[], choose: Choose) =>
  terms.length === 0 ? {} : { conditions: terms.map((term) => conditionOf(table, term, choose)) }

function conditionOf(table: Table, condition: Condition, choose: Choose): unknown {
  if (condition.kind === 'compare') {
    return choose(4) === 0 && hasText(condition)
      ? { operator: 'and', value: textTerm(table, condition, choose) }
      : comparisonOf(table, condition, choose)
  }
  const isText = choose(2) === 0 && hasText(condition)
  if (condition.kind === 'not') return negationOf(table, condition.term, choose, isText)
  const operator = condition.kind === 'any' ? 'or' : 'and'
  if (!isText) return { [operator]: condition.terms.map((term) => conditionOf(table, term, choose)) }
  const text = condition.terms.map((term) => textTerm(table, term, choose)).join(',')
  return { operator, value: [text, `(${text})`][choose(2)] }
}

function negationOf(table: Table, term: Condition, choose: Choose, isText: boolean): unknown {
  if (!isText) return { [choose(2) === 0 ? 'not' : 'NOT']: conditionOf(table, term, choose) }
  if (term.kind === 'compare' && term.columnCast === undefined && choose(2) === 0)
    return {
      operator: 'not',
      column: columnAt(table, term.column).name,
      value: predicateOf(table, term, choose),
    }
  return { operator: 'not', value: textTerm(table, term, choose) }
}

function comparisonOf(table: Table, term: Comparison, choose: Choose): unknown {
  const column = columnAt(table, term.column).name
  const value = operandJson(term.operand, choose)
  const casts = { column: castName(term), value: valueCastName(table, term) }
  const isShort = term.operator === 'eq' && choose(2) === 0
  const prefix = isShort ? 'eq_' : ''
  return {
    ...(isShort ? {} : { operator: spelled(term.operator, choose) }),
    [`${prefix}column`]: column,
    [`${prefix}value`]: value,
    ...(casts.column && { [`${prefix}column_cast`]: casts.column }),
    ...(casts.value && { [`${prefix}value_cast`]: casts.value }),
  }
}

const castName = ({ columnCast }: Comparison): string | undefined => columnCast && casts[columnCast].sql

function valueCastName(
  table: Table,
  { column, valueCast, operand, columnCast }: Comparison,
): string | undefined {
  if (valueCast !== 'same') return valueCast && valueCasts[valueCast]?.sql
  // Patterns and searches are texts anyway.
  if (operand.kind !== 'value' && operand.kind !== 'list') return undefined
  const kind = columnCast ? casts[columnCast].to : columnAt(table, column).kind
  return (kinds[kind] as Kind).sql.replace(/ collate "C"|\(\d+(?:,\d+)?\)/g, '')
}

const SPELLINGS: Readonly<Record<string, readonly string[]>> = {
  contains: ['contains', 'cs'],
  containedBy: ['containedBy', 'cd', 'contained_by'],
  overlaps: ['overlaps', 'ov'],
  neq: ['neq', 'ne'],
}

function spelled(operator: string, choose: Choose): string {
  const ways = SPELLINGS[operator] ?? [operator]
  return ways[choose(ways.length)] ?? operator
}

function operandJson(operand: Operand, choose: Choose): unknown {
  switch (operand.kind) {
    case 'value':
      return conditionJson(operand.of, operand.value, choose)
    case 'list': {
      const isText = choose(4) === 0
      if (isText) return `(${listText(operand.of, operand.values, choose)})`
      return operand.values.map((value) => conditionJson(operand.of, value, choose))
    }
    case 'word':
      return [operand.word, operand.word.toUpperCase(), wordJson(operand.word)][choose(3)]
    case 'pattern':
      return patternText(operand.pattern)
    case 'search':
      return searchText(operand.search)
  }
}

const wordJson = (word: string): unknown => (word === 'unknown' ? word : JSON.parse(word))

/** A string is parsed as JSON text; other values are used as they are. */
function conditionJson(name: KindName, value: Value | null, choose: Choose): unknown {
  if (name !== 'jsonb' || value === null) return jsonOf(name, value, choose)
  return typeof value === 'string' || choose(2) === 0
    ? textOf(name, value, choose)
    : jsonBody(value as JsonValue)
}

// Text of terms

/** The text notation has no value casts. */
export const hasText = (condition: Condition): boolean => {
  if (condition.kind === 'compare') return condition.valueCast === undefined && !isNullOperand(condition)
  return condition.kind === 'not' ? hasText(condition.term) : condition.terms.every(hasText)
}

/** The word null is a value only after eq, neq and in. */
const isNullOperand = ({ operator, operand }: Comparison): boolean =>
  operand.kind === 'value' && operand.value === null && operator !== 'eq' && operator !== 'neq'

function textTerm(table: Table, condition: Condition, choose: Choose): string {
  if (condition.kind === 'compare') {
    const cast = castName(condition)
    return `${nameText(columnAt(table, condition.column).name, choose)}${cast ? `::${cast}` : ''}.${predicateOf(table, condition, choose)}`
  }
  if (condition.kind === 'not') {
    const { term } = condition
    if (term.kind === 'compare') {
      const cast = castName(term)
      if (choose(2) === 0)
        return `${nameText(columnAt(table, term.column).name, choose)}${cast ? `::${cast}` : ''}.not.${predicateOf(table, term, choose)}`
    } else if (term.kind !== 'not' && choose(2) === 0) return `not.${textTerm(table, term, choose)}`
    return `not(${textTerm(table, term, choose)})`
  }
  return `${condition.kind === 'all' ? 'and' : 'or'}(${condition.terms.map((term) => textTerm(table, term, choose)).join([',', ', '][choose(2)])})`
}

function predicateOf(_table: Table, { operator, operand }: Comparison, choose: Choose): string {
  return `${spelled(operator, choose)}.${operandText(operand, choose)}`
}

function operandText(operand: Operand, choose: Choose): string {
  switch (operand.kind) {
    case 'value':
      return operand.value === null ? 'null' : literal(textOf(operand.of, operand.value, choose), choose)
    case 'list':
      return `(${listText(operand.of, operand.values, choose)})`
    case 'word':
      return operand.word
    case 'pattern':
      return literal(patternText(operand.pattern), choose)
    case 'search':
      return literal(searchText(operand.search), choose)
  }
}

const listText = (of: KindName, values: readonly (Value | null)[], choose: Choose): string =>
  values.map((value) => (value === null ? 'null' : literal(textOf(of, value, choose), choose))).join(',')

const literal = (text: string, choose: Choose): string =>
  /^[\w%.:+-]+$/.test(text) && text !== 'null' && choose(2) === 0 ? text : inQuotes(text)

const nameText = (name: string, choose: Choose): string =>
  /^\w+$/.test(name) && choose(2) === 0 ? name : inQuotes(name)

export const inQuotes = (text: string): string => `"${text.replace(/["\\]/g, (sign) => `\\${sign}`)}"`

const patternText = (pattern: readonly PatternPart[]): string =>
  pattern
    .map((part) => {
      if ('any' in part) return part.any === 'many' ? '%' : '_'
      return /[%_\\]/.test(part.character) ? `\\${part.character}` : part.character
    })
    .join('')

const searchText = (search: Search): string =>
  search
    .map((phrases) =>
      phrases
        .map(
          ({ words, not }) =>
            `${not ? '-' : ''}${words.length > 1 ? `"${words.join(' ')}"` : words.join('')}`,
        )
        .join(' '),
    )
    .join(' or ')

// The structured `where`

const GROUPS = new Set(['or', 'and', 'not'])

/** Whether `where` can express the term: a column named like a group cannot be used, nor can a value that is an object or a list. */
const hasWhere = (table: Table, condition: Condition): boolean =>
  condition.kind === 'compare' &&
  condition.columnCast === undefined &&
  condition.valueCast === undefined &&
  !GROUPS.has(columnAt(table, condition.column).name.toLowerCase())

function whereOf(table: Table, condition: Condition, choose: Choose): Record<string, unknown> {
  if (condition.kind !== 'compare') throw new Error('not a comparison')
  const { name } = columnAt(table, condition.column)
  return { [name]: { [spelled(condition.operator, choose)]: operandJson(condition.operand, choose) } }
}
