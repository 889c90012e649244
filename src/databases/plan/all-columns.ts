import type { Table } from '#databases/plan/catalogue.ts'
import type { Output } from '#databases/plan/plan.ts'

/** Every column of a table, as most reads ask for them: the same list each time, so that more can be kept beside it. */
export function allColumns(table: Table): readonly Output[] {
  const known = OUTPUTS.get(table)
  if (known !== undefined) return known
  const output = [...table.columns.values()].map(
    (column) => ({ kind: 'column', as: column.name, column }) as const,
  )
  OUTPUTS.set(table, output)
  return output
}

/** A table of a catalogue never changes; a new catalogue has new ones. */
const OUTPUTS = new WeakMap<Table, readonly Output[]>()
