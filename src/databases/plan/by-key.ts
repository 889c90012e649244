import type { Column, Table } from '#databases/plan/catalogue.ts'
import { isLeakproof } from '#databases/plan/leakproof.ts'
import type { ReadPlan } from '#databases/plan/plan.ts'
import type { Condition } from '#databases/request/request.ts'

/**
 * Whether the plan reads one row by its primary key, as stored. Only a lock or the size of the row can make such a read slow: where there
 * are policies, the server finds the row by the key first only if the comparison is leakproof.
 */
export function readsByKey({ table, where, output, request }: ReadPlan): boolean {
  const isPlain = table.isPlain || (table.hasRowPolicies && where !== undefined && isLeakproof(where))
  if (!isPlain || request.count !== undefined) return false
  if (!output.every((member) => member.kind === 'column' && member.cast === undefined)) return false
  return namesOneRow(table, where)
}

/**
 * Whether the condition fixes the whole primary key. Rows of child tables may have the same key, so tables with children do not qualify.
 */
export function namesOneRow(table: Table, where: Condition<Column> | undefined): boolean {
  const terms = where?.kind === 'all' ? where.terms : [where]
  return (
    table.primaryKey.length > 0 &&
    table.hasChildren !== true &&
    terms.length === table.primaryKey.length &&
    table.primaryKey.every((name) => terms.some((term) => equals(term, name)))
  )
}

const equals = (term: Condition<Column> | undefined, name: string): boolean =>
  term?.kind === 'compare' &&
  term.operator === 'eq' &&
  term.column.name === name &&
  term.value !== null &&
  term.columnCast === undefined &&
  term.valueCast === undefined
