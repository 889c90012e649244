import type { Column, Table } from '#databases/plan/catalogue.ts'
import type { ReadPlan } from '#databases/plan/plan.ts'
import type { Condition } from '#databases/request/request.ts'

/** One row of a table by its primary key, as it is stored: nothing in it can take long but a lock, or the row's size. */
export function readsByKey({ table, where, output, count }: ReadPlan): boolean {
  if (!table.isPlain || count !== undefined) return false
  if (!output.every((member) => member.kind === 'column' && member.cast === undefined)) return false
  return namesOneRow(table, where)
}

/** By its primary key, which rows of children may have as well. */
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
