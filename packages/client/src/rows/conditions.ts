import type { Condition } from './body.ts'

type Operand = Readonly<Record<string, unknown>>

/** `{ total: { gt: 5 }, state: ['new', 'paid'], or: [{ … }, { … }] }` as conditions, joined by AND. */
export const conditionsOf = (where: Operand): readonly Condition[] =>
  Object.entries(where).flatMap(([key, value]) => {
    if (isGroup(key, value)) return groupOf(key, [value].flat().map(conditionsOf))
    return fieldConditions(key, value)
  })

/** A column may have one of these names; then its value is no object. */
const isGroup = (key: string, value: unknown): value is Operand | readonly Operand[] =>
  (key === 'or' || key === 'and' || key === 'not') && typeof value === 'object' && value !== null

function groupOf(key: string, alternatives: readonly (readonly Condition[])[]): Condition {
  if (alternatives.length === 0 || alternatives.some(({ length }) => length === 0))
    throw new TypeError(`${key} has no conditions`)
  if (key === 'not') return { not: alternatives.flat() }
  if (key === 'and') return { and: alternatives.flat() }
  return { or: alternatives.map((terms) => (terms.length === 1 && terms[0] ? terms[0] : { and: terms })) }
}

/** A value, a list of values, or operators with their values. */
function fieldConditions(column: string, value: unknown): readonly Condition[] {
  if (Array.isArray(value)) return [compare(column, 'in', value)]
  if (!isOperators(value)) return [compare(column, 'eq', value)]
  const operators = Object.entries(value)
  if (operators.length === 0) throw new TypeError(`The condition on ${column} has no operator`)
  return operators.map(([operator, operand]) =>
    operator === 'not' ? { not: fieldConditions(column, operand) } : compare(column, operator, operand),
  )
}

/** Neither a date nor another object of a class. */
const isOperators = (value: unknown): value is Operand =>
  typeof value === 'object' &&
  value !== null &&
  [Object.prototype, null].includes(Object.getPrototypeOf(value))

/**
 * A condition whose value is missing would vanish from the request, and the other ones would match more rows, also those of other users. So it
 * is a mistake of the program.
 */
export function compare(column: string, operator: string, value: unknown): Condition {
  if ([value].flat().includes(undefined))
    throw new TypeError(`The value of ${column} is undefined; for NULL, say null`)
  return { column, operator, value }
}

/** The methods of all builders that have conditions. */
export function conditionMethods<Next>(add: (...conditions: readonly Condition[]) => Next) {
  const operator = (name: string) => (column: string, value: unknown) => add(compare(column, name, value))
  return {
    where: (where: Operand) => add(...conditionsOf(where)),
    eq: operator('eq'),
    neq: operator('neq'),
    gt: operator('gt'),
    gte: operator('gte'),
    lt: operator('lt'),
    lte: operator('lte'),
    like: operator('like'),
    ilike: operator('ilike'),
    is: operator('is'),
    in: operator('in'),
    contains: operator('contains'),
    containedBy: operator('containedBy'),
    overlaps: operator('overlaps'),
    textSearch: operator('fts'),
    not: (column: string, name: string, value: unknown) => add({ not: [compare(column, name, value)] }),
    or: (terms: string) => add({ operator: 'or', value: terms }),
  }
}
