import { comparisons, readConditions } from '#databases/request/conditions.ts'
import { renaming } from '#databases/request/fields.ts'
import { parseJson } from '#databases/request/json.ts'
import type { RequestOptions } from '#databases/request/read-request.ts'
import type { Condition, Json, Operator } from '#databases/request/request.ts'
import { allOf } from '#databases/request/terms.ts'
import { fail } from '#gateway/errors.ts'
import { requestOptionsOf, storedOptionsOf } from '#gateway/prepare.ts'
import type { Kernel } from '#kernel/kernel.ts'

/** Operators that can be judged without the database (gateway.md 12). */
const JUDGED: ReadonlySet<Operator> = new Set(['eq', 'neq', 'gt', 'gte', 'lt', 'lte', 'in', 'is'])

/** Checks conditions of a webhook. Returns their JSON text, with every digit; null for none. */
export function acceptableFilter(kernel: Kernel, conditions: unknown): string | null {
  const terms = termsOf(requestOptionsOf(kernel), conditions)
  if (terms.length === 0) return null
  const all = terms.flatMap(comparisons)
  const other = all.find(({ operator }) => !JUDGED.has(operator))
  if (other !== undefined)
    throw unfit(`${other.operator} cannot be judged on an event; use ${[...JUDGED].join(', ')}.`)
  if (all.some(({ columnCast, valueCast }) => columnCast !== undefined || valueCast !== undefined))
    throw unfit('A filter of a webhook takes no casts.')
  if (!all.every(({ operator, value }) => isScalar(value) || (operator === 'in' && isList(value))))
    throw unfit('A filter compares texts, numbers, true, false and null; in takes a list of them.')
  const values = all.reduce((sum, { value }) => sum + (Array.isArray(value) ? value.length : 1), 0)
  const { conditions: maximum } = kernel.config.limits
  if (values > maximum) throw fail('too_many_conditions', { details: { maximum, given: values } })
  return JSON.stringify(conditions)
}

const isScalar = (value: Json): boolean =>
  typeof value !== 'object' || value === null || JSON.isRawJSON(value)
const isList = (value: Json): boolean => Array.isArray(value) && value.every(isScalar)

/** The condition of a stored filter. */
export const conditionOf = (kernel: Kernel, filter: string): Condition<string> =>
  allOf(termsOf(storedOptionsOf(kernel), parseJson(filter)))

const termsOf = (options: RequestOptions, conditions: unknown): Condition<string>[] =>
  readConditions(conditions, {
    ...options.limits,
    rename: renaming(options),
    code: 'invalid_condition',
    field: 'filter',
  })

const unfit = (hint: string) => fail('invalid_condition', { hint, details: { field: 'filter' } })
