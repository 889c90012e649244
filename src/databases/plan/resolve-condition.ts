import { castOf } from '#databases/plan/casts.ts'
import type { Column, Table } from '#databases/plan/catalogue.ts'
import { findColumn } from '#databases/plan/lookup.ts'
import type { Condition } from '#databases/request/request.ts'

export function resolveCondition(table: Table, condition: Condition<string>): Condition<Column>
export function resolveCondition(
  table: Table,
  condition: Condition<string> | undefined,
): Condition<Column> | undefined
export function resolveCondition(
  table: Table,
  condition: Condition<string> | undefined,
): Condition<Column> | undefined {
  if (condition === undefined) return undefined
  if (condition.kind === 'not') return { kind: 'not', term: resolveCondition(table, condition.term) }
  if (condition.kind !== 'compare')
    return { kind: condition.kind, terms: condition.terms.map((term) => resolveCondition(table, term)) }
  const { columnCast, valueCast, ...rest } = condition
  return {
    ...rest,
    column: findColumn(table, condition.column),
    ...(columnCast !== undefined && { columnCast: castOf(columnCast) }),
    ...(valueCast !== undefined && { valueCast: castOf(valueCast) }),
  }
}
