import { fail } from '#databases/failures.ts'
import {
  type Comparison,
  type Condition,
  type Json,
  OPERATORS,
  type Operator,
} from '#databases/request/request.ts'
import {
  atEnd,
  eat,
  peek,
  quote,
  quoted,
  type Scanner,
  scan,
  skipSpace,
  until,
} from '#databases/request/scanner.ts'

/**
 * The grammar of `or` and `not` (gateway.md 4), the only one for conditions written as text:
 *
 *   terms      = term { "," term }
 *   term       = [ "not." ] ( "and" | "or" ) "(" terms ")" | "not(" terms ")" | comparison
 *   comparison = column [ "::" type ] "." [ "not." ] operator "." value
 *   column     = quoted | anything without . , ( ) : and space
 *   value      = quoted | "(" item { "," item } ")" for `in`, also in braces | "{…}" | anything without , ( )
 *
 * Unquoted `null` after eq, neq and in is the null value; every other value is text that the database converts.
 */
export function parseTerms(text: string, nesting: number): Condition<string>[] {
  const scanner = scan(text)
  const terms = readTerms(scanner, nesting)
  if (!atEnd(scanner)) throw unexpected(scanner)
  return terms
}

function readTerms(scanner: Scanner, nesting: number): Condition<string>[] {
  if (nesting < 0) throw fail('too_deep', { details: { field: 'conditions' } })
  const terms: Condition<string>[] = []
  do terms.push(readTerm(scanner, nesting))
  while (eat(scanner, ','))
  return terms
}

function readTerm(scanner: Scanner, nesting: number): Condition<string> {
  skipSpace(scanner)
  const start = scanner.at
  const negated = eat(scanner, 'not.')
  const group = readGroup(scanner, nesting)
  if (group) return negated ? { kind: 'not', term: group } : group
  if (!negated && eat(scanner, 'not(')) return { kind: 'not', term: allOf(readBody(scanner, nesting)) }
  // A column may be called `not`.
  scanner.at = start
  return readComparison(scanner)
}

function readGroup(scanner: Scanner, nesting: number): Condition<string> | undefined {
  if (eat(scanner, 'and(')) return { kind: 'all', terms: readBody(scanner, nesting) }
  if (eat(scanner, 'or(')) return { kind: 'any', terms: readBody(scanner, nesting) }
  return undefined
}

function readBody(scanner: Scanner, nesting: number): Condition<string>[] {
  const terms = readTerms(scanner, nesting - 1)
  if (!eat(scanner, ')')) throw unexpected(scanner)
  skipSpace(scanner)
  return terms
}

function readComparison(scanner: Scanner): Condition<string> {
  const column = readColumn(scanner)
  const columnCast = eat(scanner, '::') ? until(scanner, '.,()') : undefined
  if (!eat(scanner, '.')) throw unexpected(scanner)
  return readPredicate(scanner, column, columnCast)
}

/** `[not.]operator.value`, also the value of `{ operator: "not", column }`. */
function readPredicate(scanner: Scanner, column: string, columnCast: string | undefined): Condition<string> {
  const negated = eat(scanner, 'not.')
  const operator = operatorOf(until(scanner, '.,()'))
  if (operator === undefined || !eat(scanner, '.')) throw unexpected(scanner)
  const value =
    operator === 'in' ? readList(scanner) : readValue(scanner, operator === 'eq' || operator === 'neq')
  skipSpace(scanner)
  const cast = columnCast === undefined ? {} : { columnCast }
  const term: Comparison<string> = { kind: 'compare', column, operator, value, ...cast }
  return negated ? { kind: 'not', term } : term
}

/** The predicate is the whole text, so the list of `in` needs no parentheses: `in.A,B`. */
export function parsePredicate(column: string, text: string): Condition<string> {
  const scanner = scan(text)
  const negated = text.startsWith('not.in.')
  if (negated || text.startsWith('in.')) {
    scanner.at = negated ? 'not.in.'.length : 'in.'.length
    if (!'({'.includes(peek(scanner) || '(')) return inTerm(column, readWhole(scanner), negated)
    scanner.at = 0
  }
  const term = readPredicate(scanner, column, undefined)
  if (!atEnd(scanner)) throw unexpected(scanner)
  return term
}

function readWhole(scanner: Scanner): Json {
  const items = readItems(scanner, ',')
  if (!atEnd(scanner)) throw unexpected(scanner)
  return items
}

function inTerm(column: string, value: Json, negated: boolean): Condition<string> {
  const term: Comparison<string> = { kind: 'compare', column, operator: 'in', value }
  return negated ? { kind: 'not', term } : term
}

function readColumn(scanner: Scanner): string {
  const name = eat(scanner, '"') ? quoted(scanner) : until(scanner, '.,(): ')
  if (!name) throw unexpected(scanner)
  return name
}

/** `(a,b)`, or `{a,b}` as other clients write it. */
function readList(scanner: Scanner): Json {
  const inBraces = eat(scanner, '{')
  if (!inBraces && !eat(scanner, '(')) throw unexpected(scanner)
  const close = inBraces ? '}' : ')'
  skipSpace(scanner)
  if (eat(scanner, close)) return []
  const items = readItems(scanner, inBraces ? ',{}' : ',()')
  if (!eat(scanner, close)) throw unexpected(scanner)
  return items
}

function readItems(scanner: Scanner, stops: string): Json[] {
  const items: Json[] = []
  do {
    skipSpace(scanner)
    items.push(readValue(scanner, true, stops))
    skipSpace(scanner)
  } while (eat(scanner, ','))
  return items
}

function readValue(scanner: Scanner, nullable: boolean, stops = ',()'): Json {
  if (eat(scanner, '"')) {
    const text = quoted(scanner)
    if (text === undefined) throw unexpected(scanner)
    return text
  }
  if (peek(scanner) === '{') return readBraces(scanner)
  const text = until(scanner, stops)
  return nullable && text === 'null' ? null : text
}

/** Reads an array or JSON literal up to its closing brace; braces inside `"…"` do not count. */
function readBraces(scanner: Scanner): string {
  const start = scanner.at
  let depth = 0
  do {
    const character = peek(scanner)
    if (atEnd(scanner)) throw unexpected(scanner)
    scanner.at++
    if (character === '{') depth++
    else if (character === '}') depth--
    else if (character === '"' && quoted(scanner) === undefined) throw unexpected(scanner)
  } while (depth > 0)
  return scanner.text.slice(start, scanner.at)
}

/** The name of an operator in any of its spellings. */
export function operatorOf(name: string): Operator | undefined {
  return Object.hasOwn(SPELLINGS, name) ? SPELLINGS[name] : OPERATORS.find((operator) => operator === name)
}

const SPELLINGS: Readonly<Record<string, Operator>> = {
  cs: 'contains',
  cd: 'containedBy',
  contained_by: 'containedBy',
  ov: 'overlaps',
  ne: 'neq',
}

export const allOf = (terms: readonly Condition<string>[]): Condition<string> =>
  terms.length === 1 && terms[0] ? terms[0] : { kind: 'all', terms }

const unexpected = (scanner: Scanner) =>
  fail('invalid_condition', {
    hint: 'Terms look like column.operator.value, separated by commas; put a value with commas, dots or parentheses in double quotes.',
    details: { field: 'conditions', position: scanner.at },
  })

/** Prints terms as text: `parseTerms(printTerms(t))` equals t when its values are text, null and lists of these. */
export const printTerms = (terms: readonly Condition<string>[]): string => terms.map(printTerm).join(',')

function printTerm(term: Condition<string>): string {
  if (term.kind === 'not') return `not(${printTerm(term.term)})`
  if (term.kind !== 'compare') return `${term.kind === 'all' ? 'and' : 'or'}(${printTerms(term.terms)})`
  const cast = term.columnCast === undefined ? '' : `::${term.columnCast}`
  return `${quote(term.column)}${cast}.${term.operator}.${printValue(term.value)}`
}

function printValue(value: Json): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? `(${value.map(printValue).join(',')})` : quote(String(value))
}
