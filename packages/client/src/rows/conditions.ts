import { isObject, isRounded } from '../json.ts'
import type { Condition } from './body.ts'

type Operand = Readonly<Record<string, unknown>>

/** `{ total: { gt: 5 }, state: ['new', 'paid'], or: [{ … }, { … }] }` as conditions, joined by AND. */
export function conditionsOf(where: Operand): readonly Condition[] {
  if (!isPlain(where)) throw new TypeError('where takes an object')
  return Object.entries(where).flatMap(([key, value]) => {
    if (isGroup(key, value)) return groupOf(key, [value].flat().map(conditionsOf))
    return fieldConditions(key, value)
  })
}

/** A column may have one of these names; then its value is no object. */
const isGroup = (key: string, value: unknown): value is Operand | readonly Operand[] =>
  ['or', 'and', 'not'].includes(key) && isObject(value)

function groupOf(key: string, alternatives: readonly (readonly Condition[])[]): Condition {
  if (alternatives.length === 0 || alternatives.some(({ length }) => length === 0))
    throw new TypeError(`${key} has no conditions`)
  if (key !== 'or') return { [key as 'and']: alternatives.flat() } // or `not`
  return { or: alternatives.map((terms) => (terms.length === 1 && terms[0] ? terms[0] : { and: terms })) }
}

/** A value, a list of values, or operators with their values. */
function fieldConditions(column: string, value: unknown): readonly Condition[] {
  if (Array.isArray(value)) return [compare(column, 'in', value)]
  if (!isPlain(value)) return [compare(column, 'eq', value)]
  const operators = Object.entries(value)
  if (operators.length === 0) throw new TypeError(`The condition on ${column} has no operator`)
  return operators.map(([operator, operand]) =>
    operator === 'not' ? { not: fieldConditions(column, operand) } : compare(column, operator, operand),
  )
}

/** Neither a date nor another object of a class, nor a list. */
function isPlain(value: unknown): value is Operand {
  if (!isObject(value)) return false
  const prototype = Object.getPrototypeOf(value)
  // Programs of several realms, as in a test runner, have several Object.prototype.
  return prototype === null || (Object.getPrototypeOf(prototype) === null && !Array.isArray(value))
}

/**
 * A value that JSON drops or turns into null would make another condition, which may match more rows, also those of other users: `{ owner: undefined }`
 * is contained in every object, and each number is less than NaN. So it is a mistake of the program.
 */
export function compare(column: string, operator: string, value: unknown): Condition {
  if (typeof operator !== 'string') throw new TypeError(`The condition on ${column} has no operator`)
  if (!isWhole(value)) throw new TypeError(`${column} is undefined, NaN or no JSON, or has such a part`)
  expectExact(column, value)
  return { column, operator, value }
}

/** A number that was rounded may be that of another row. */
export function expectExact(column: string, value: unknown): void {
  const rounded = [value].flat().find(isRounded)
  if (rounded !== undefined) throw new TypeError(`${column}: ${rounded} may have been rounded; pass a bigint`)
}

/** Whether JSON keeps the value with all of its parts. */
function isWhole(value: unknown): boolean {
  if (value === null || ['string', 'boolean', 'bigint'].includes(typeof value)) return true
  if (typeof value === 'number') return !Number.isNaN(value)
  if (!isObject(value)) return false
  // Dates, and dates of libraries: null, if they are invalid.
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    const json: unknown = value.toJSON()
    return json !== null && isWhole(json)
  }
  // Not values(): a list may have holes.
  if (Array.isArray(value)) return [...value].every(isWhole)
  return isPlain(value) && Object.values(value).every(isWhole)
}

/** Those that are methods by their names. */
const OPERATORS = 'eq neq gt gte lt lte like ilike is in contains containedBy overlaps'.split(' ')

/** The methods of all builders that have conditions. */
export function conditionMethods<Next>(add: (...conditions: readonly Condition[]) => Next) {
  const operator = (name: string) => (column: string, value: unknown) => add(compare(column, name, value))
  return {
    ...Object.fromEntries(OPERATORS.map((name) => [name, operator(name)])),
    where: (where: Operand) => add(...conditionsOf(where)),
    textSearch: operator('fts'),
    not: (column: string, name: string, value: unknown) => add({ not: [compare(column, name, value)] }),
    or: (terms: string) => add({ operator: 'or', value: terms }),
  }
}
