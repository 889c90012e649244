import type { TableDefinition } from '#databases/drivers/management.ts'
import type { GatewayCaller } from '../caller.ts'
import { audited, type Changer, managementOf } from './change.ts'

/** Creates a table and returns its definition. An existing name gets 409. */
export async function createManagedTable(changer: Changer, asked: TableDefinition) {
  const { schema, table } = asked
  const written = await managementOf(changer.caller).tables.create(asked)
  await audited(
    changer,
    { operation: 'create_table', schema, object: table, event: { table: `${schema}.${table}` } },
    written,
  )
  return describeTable(changer.caller, schema, table)
}

/** The table as the catalogue shows it now. */
export async function describeTable({ backend }: GatewayCaller, schema: string, table: string) {
  const found = (await backend.catalogue()).find(schema, table)
  const columns = [...(found?.columns.values() ?? [])].map((column) => ({
    name: column.name,
    data_type: column.type,
    nullable: column.nullable,
    default_expression: column.fallback ?? null,
    primary_key: found?.primaryKey.includes(column.name) ?? false,
  }))
  return { schema_name: schema, table_name: table, columns }
}
