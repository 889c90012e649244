import type { Catalogue, Column, Table } from '#databases/catalogue.ts'
import { fail } from '#databases/failures.ts'
import type { TableName } from '#databases/plan.ts'

export function findTable(catalogue: Catalogue, { schema, table }: TableName): Table {
  const found = catalogue.find(schema, table)
  if (found) return found
  throw fail('table_not_found', {
    message: `There is no table ${schema}.${table}`,
    details: { schema_name: schema, table_name: table },
  })
}

export function findColumn(table: Table, name: string): Column {
  const column = table.columns.get(name)
  if (column) return column
  const near = nearest(name, [...table.columns.keys()])
  throw fail('unknown_column', {
    message: `Table ${table.schema}.${table.name} has no column ${shown(name)}`,
    ...(near !== undefined && { hint: `Did you mean ${near}?` }),
    details: { ...tableFacts(table), column: shown(name), ...(near !== undefined && { did_you_mean: near }) },
  })
}

export function writable(table: Table, name: string): Column {
  const column = findColumn(table, name)
  if (column.writable) return column
  throw fail('column_not_writable', {
    message: `Column ${name} is computed by the database`,
    details: { ...tableFacts(table), column: name },
  })
}

export const tableFacts = (table: Table) => ({ schema_name: table.schema, table_name: table.name })
export const shown = (text: string): string => text.slice(0, 100)

/** The name at the smallest edit distance, if that is small beside its length. */
function nearest(name: string, names: readonly string[]): string | undefined {
  if (name.length > 63) return undefined
  const rated = names.map((other) => ({
    other,
    distance: editDistance(name.toLowerCase(), other.toLowerCase()),
  }))
  const best = rated.sort((a, b) => a.distance - b.distance)[0]
  return best && best.distance <= Math.ceil(best.other.length / 3) ? best.other : undefined
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
