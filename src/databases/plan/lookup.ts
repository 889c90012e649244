import { fail } from '#databases/failures.ts'
import type { Catalogue, Column, Table } from '#databases/plan/catalogue.ts'
import type { TableName } from '#databases/request/request.ts'
import { closestName } from '#kernel/closest-name.ts'

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
  const near = closestName(name, [...table.columns.keys()])
  throw fail('unknown_column', {
    message: `Table ${table.schema}.${table.name} has no column ${truncated(name)}`,
    ...(near !== undefined && { hint: `Did you mean ${near}?` }),
    details: {
      ...tableFacts(table),
      column: truncated(name),
      ...(near !== undefined && { did_you_mean: near }),
    },
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

/** The text of a caller, short enough for a message. */
export const truncated = (text: string): string => text.slice(0, 100)
