import { fail } from '#databases/failures.ts'
import { type Condition, type Json, OPERATORS, type Operator } from '#databases/request/request.ts'
import { allOf, operatorOf, parsePredicate, parseTerms } from '#databases/request/terms.ts'
import { meantMember } from '#kernel/closest-name.ts'

export type ConditionOptions = {
  readonly conditions: number
  readonly nesting: number
  readonly rename: (column: string) => string
  /** The failure code of a malformed condition; structured requests have their own. */
  readonly code: 'invalid_condition' | 'invalid_structured_select_request'
  /** The member of the body that has the conditions: `conditions`, unless named. */
  readonly field?: string
}

/** Reads `conditions` of a body (gateway.md 4): one condition, or a list joined by AND. */
export function readConditions(input: unknown, options: ConditionOptions): Condition<string>[] {
  if (input === undefined || input === null) return []
  const terms = list(input).map((item) => readCondition(item, options, options.nesting))
  return bounded(terms, options)
}

/** Reads the structured `where`: `{ age: { gte: 18 }, name: "Ada", or: [{ … }, { … }] }`. */
export function readWhere(input: unknown, options: ConditionOptions): Condition<string>[] {
  if (input === undefined || input === null) return []
  return bounded(readFields(input, options, options.nesting), options)
}

function readCondition(item: unknown, options: ConditionOptions, nesting: number): Condition<string> {
  if (nesting < 0) throw fail('too_deep', { details: { field: 'conditions' } })
  const condition = record(item, options)
  const group = readGroup(condition, options, (term) => readCondition(term, options, nesting - 1))
  if (group) return group
  for (const key of Object.keys(condition)) if (!MEMBERS.has(key)) throw unknownMember(key, options)
  const name = condition.operator ?? 'eq'
  if (name === 'or' || name === 'not' || name === 'and') return readTextual(name, condition, options, nesting)
  return readComparison(name, condition, options)
}

function unknownMember(key: string, options: ConditionOptions) {
  const meant = meantMember(key, [...MEMBERS])
  const advice = meant === undefined ? FORM : `Did you mean ${meant}?`
  return malformed(options, `${key.slice(0, 100)} is not a member of a condition. ${advice}`)
}

const FORM = 'It has operator, column and value, or eq_column and eq_value.'

const MEMBERS = new Set([
  'operator',
  'column',
  'value',
  'column_cast',
  'value_cast',
  'eq_column',
  'eq_value',
  'eq_column_cast',
  'eq_value_cast',
])

/** `{ or: […] }`, `{ and: […] }`, `{ not: … }` instead of a comparison. */
function readGroup(
  condition: Readonly<Record<string, unknown>>,
  options: ConditionOptions,
  read: (term: unknown) => Condition<string>,
): Condition<string> | undefined {
  const [key, ...others] = Object.keys(condition)
  const kind = key?.toLowerCase()
  if (key === undefined || others.length > 0 || (kind !== 'or' && kind !== 'and' && kind !== 'not'))
    return undefined
  const terms = list(condition[key]).map(read)
  if (terms.length === 0) throw malformed(options, `${key} is empty.`)
  if (kind === 'not') return { kind: 'not', term: allOf(terms) }
  return { kind: kind === 'or' ? 'any' : 'all', terms }
}

/** `or`, `and`, `not` whose value is terms as text, a list of them, or conditions. */
function readTextual(
  name: 'or' | 'and' | 'not',
  condition: Readonly<Record<string, unknown>>,
  options: ConditionOptions,
  nesting: number,
): Condition<string> {
  const { column, value } = condition
  if (name === 'not' && typeof column === 'string' && column !== '' && typeof value === 'string')
    return { kind: 'not', term: renamed(parsePredicate(column, value), options) }
  if (name === 'not' && typeof column === 'string' && column !== '' && Array.isArray(value))
    return { kind: 'not', term: readComparison('in', { column, value }, options) }
  if (column !== undefined && column !== null && column !== '')
    throw malformed(options, `${name} takes terms as its value, and no column.`)
  const terms = list(value).flatMap((term) =>
    typeof term === 'string'
      ? parseTerms(unwrapped(term), nesting - 1).map((parsed) => renamed(parsed, options))
      : [readCondition(term, options, nesting - 1)],
  )
  if (terms.length === 0) throw malformed(options, `${name} needs terms.`)
  if (name === 'not') return { kind: 'not', term: allOf(terms) }
  return { kind: name === 'or' ? 'any' : 'all', terms }
}

/** PostgREST writes `or=(a.eq.1,b.eq.2)`, so parentheses around all terms are allowed here too. */
const unwrapped = (text: string): string =>
  text.startsWith('(') && text.endsWith(')') ? text.slice(1, -1) : text

function readComparison(
  name: unknown,
  condition: Readonly<Record<string, unknown>>,
  options: ConditionOptions,
): Condition<string> {
  const operator = typeof name === 'string' ? operatorOf(name) : undefined
  if (operator === undefined)
    throw malformed(options, `operator is one of ${OPERATORS.join(', ')}.`, { operator: describeValue(name) })
  const short = isGiven(condition.eq_column) || isGiven(condition.eq_value)
  if (short && operator !== 'eq')
    throw malformed(options, 'eq_column and the operator contradict each other.')
  const column = agreed(condition, 'column', options)
  const value = agreed(condition, 'value', options)
  if (typeof column !== 'string' || column === '') throw malformed(options, 'column is missing.')
  if (value === undefined) throw malformed(options, 'value is missing.', { column })
  const columnCast = castOf(agreed(condition, 'column_cast', options), options)
  const valueCast = castOf(agreed(condition, 'value_cast', options), options)
  return {
    kind: 'compare',
    column: options.rename(column),
    operator,
    value: fitting(operator, value, column, options),
    ...(columnCast !== undefined && { columnCast }),
    ...(valueCast !== undefined && { valueCast }),
  }
}

/** A member may be given in its long and its short form when both have the same value. */
function agreed(
  condition: Readonly<Record<string, unknown>>,
  member: string,
  options: ConditionOptions,
): unknown {
  const [long, short] = [condition[member], condition[`eq_${member}`]]
  // Null counts as a value only for the spelling that names the column.
  const other = member === 'value' && short === null && isGiven(condition.column) ? undefined : short
  const isLong =
    member === 'value' ? long !== undefined && (long !== null || other === undefined) : isGiven(long)
  if (!isLong) return other
  if (isGiven(other) && JSON.stringify(long) !== JSON.stringify(other))
    throw malformed(options, `${member} and eq_${member} contradict each other.`)
  return long
}

const isGiven = (member: unknown): boolean => member !== undefined && member !== null

function castOf(cast: unknown, options: ConditionOptions): string | undefined {
  if (cast === undefined || cast === null || cast === '') return undefined
  if (typeof cast !== 'string') throw malformed(options, 'A cast is the name of a type.')
  return cast
}

/** Converts the value to the form that its operator takes. */
function fitting(operator: Operator, value: unknown, column: string, options: ConditionOptions): Json {
  // The body was parsed from JSON text, so every value in it is a Json.
  const json = value as Json
  if (operator === 'is') {
    const word = (typeof json === 'string' ? json : JSON.stringify(json)).toLowerCase()
    if (['null', 'true', 'false', 'unknown'].includes(word)) return word
    throw malformed(options, 'is takes null, true, false or unknown.', { column })
  }
  if (operator === 'in') {
    if (typeof json === 'string' && /^[({]/.test(json)) return inList(column, json)
    if (Array.isArray(json)) return json
    throw malformed(options, 'in takes a list.', { column })
  }
  if (operator === 'like' || operator === 'ilike' || operator === 'fts') {
    if (typeof json === 'string') return json
    throw malformed(options, `${operator} takes text.`, { column })
  }
  return json
}

function inList(column: string, text: string): Json {
  const term = parsePredicate(column, `in.${text}`)
  return term.kind === 'compare' ? term.value : null
}

function readFields(input: unknown, options: ConditionOptions, nesting: number): Condition<string>[] {
  if (nesting < 0) throw fail('too_deep', { details: { field: 'where' } })
  return Object.entries(record(input, options)).flatMap(([key, value]) => {
    const group = isGroup(value)
      ? readGroup({ [key]: value }, options, (term) => {
          const terms = readFields(term, options, nesting - 1)
          if (terms.length === 0) throw malformed(options, `${key} is empty.`)
          return allOf(terms)
        })
      : undefined
    return group ? [group] : readField(key, value, options, nesting)
  })
}

const isGroup = (value: unknown): boolean => typeof value === 'object' && value !== null

/** `column: value`, `column: [values]`, `column: { operator: value, … }`. */
function readField(
  column: string,
  value: unknown,
  options: ConditionOptions,
  nesting: number,
): Condition<string>[] {
  if (nesting < 0) throw fail('too_deep', { details: { field: 'where' } })
  if (Array.isArray(value)) return [readComparison('in', { column, value }, options)]
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value))
    return [readComparison('eq', { column, value }, options)]
  const comparisons = Object.entries(value)
  if (comparisons.length === 0) throw malformed(options, 'A column needs a value or an operator.', { column })
  return comparisons.map(([operator, operand]): Condition<string> => {
    if (operator !== 'not') return readComparison(operator, { column, value: operand }, options)
    return { kind: 'not', term: allOf(readField(column, operand, options, nesting - 1)) }
  })
}

/** Applies the renaming of columns to text terms. */
function renamed(term: Condition<string>, options: ConditionOptions): Condition<string> {
  if (term.kind === 'not') return { kind: 'not', term: renamed(term.term, options) }
  if (term.kind !== 'compare')
    return { kind: term.kind, terms: term.terms.map((inner) => renamed(inner, options)) }
  const value = fitting(term.operator, term.value, term.column, options)
  return { ...term, column: options.rename(term.column), value }
}

function bounded(terms: Condition<string>[], options: ConditionOptions): Condition<string>[] {
  const count = terms.reduce((sum, term) => sum + comparisons(term).length, 0)
  if (count > options.conditions)
    throw fail('too_many_conditions', { details: { maximum: options.conditions, given: count } })
  return terms
}

/** Every comparison of a tree, in order. */
export function comparisons<C>(
  condition: Condition<C> | undefined,
): Extract<Condition<C>, { kind: 'compare' }>[] {
  if (condition === undefined) return []
  if (condition.kind === 'compare') return [condition]
  return condition.kind === 'not'
    ? comparisons(condition.term)
    : condition.terms.flatMap((term) => comparisons(term))
}

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [value])

function record(value: unknown, options: ConditionOptions): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw malformed(options, 'A condition is an object.')
  // An object parsed from JSON has string keys.
  return value as Readonly<Record<string, unknown>>
}

/** Not `String(value)`: an object parsed from JSON may have any `toString`. */
const describeValue = (value: unknown): string =>
  typeof value === 'string' ? value.slice(0, 100) : typeof value

const malformed = (options: ConditionOptions, hint: string, details: Record<string, unknown> = {}) =>
  fail(options.code, { hint, details: { field: options.field ?? 'conditions', ...details } })
