import type { Cascade, TableDefinition, TableEdit } from '#databases/drivers/management.ts'
import type { Table } from '#databases/plan/catalogue.ts'
import type { TableName } from '#databases/request/request.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { fail } from '../errors.ts'
import { callerRoles } from '../same-database.ts'
import { type Changer, type EmitChange, managementOf, runAudited } from './change.ts'
import { requireColumnRights, requireEditRights, requireReferences } from './edit-rights.ts'

/** Creates a table and returns its definition. An existing name gets 409. */
export async function createManagedTable(changer: Changer, asked: TableDefinition) {
  const { schema, table } = asked
  const { caller, clients } = changer
  const closedTo = await callerRoles(clients, caller.backend)
  const ddl = await managementOf(caller).tables.create(asked, closedTo)
  // After `create`, which refuses a wrong definition.
  await requireReferences(changer, asked.columns)
  const announce = (emit: EmitChange) => emit('schema_table_created', { table: `${schema}.${table}` })
  await runAudited(changer, { operation: 'create_table', schema, object: table, table, announce }, ddl)
  return describeTable(caller, schema, table)
}

/** Changes a table, all or nothing, and returns its definition. */
export async function editManagedTable(changer: Changer, at: TableName, edits: readonly TableEdit[]) {
  const found = await findTable(changer.caller, at)
  await requireEditRights(changer, found, edits)
  const ddl = await managementOf(changer.caller).tables.edit(found, edits)
  const renamed = edits.findLast((edit) => edit.operation === 'rename_table')
  const { schema, table } = at
  const announce = (emit: EmitChange) => announceEdits(emit, `${schema}.${table}`, edits)
  await runAudited(changer, { operation: 'edit_table', schema, object: table, table, announce }, ddl)
  return describeTable(changer.caller, schema, renamed?.newName ?? table)
}

/** One event for all edits, and one for each edit of a column. */
async function announceEdits(emit: EmitChange, table: string, edits: readonly TableEdit[]): Promise<void> {
  await emit('schema_table_altered', { table, operations: edits.map(({ operation }) => operation) })
  for (const edit of edits) await announceColumn(emit, table, edit)
}

async function announceColumn(emit: EmitChange, table: string, edit: TableEdit): Promise<void> {
  switch (edit.operation) {
    case 'rename_table':
      return
    case 'add_column':
      return emit('schema_column_added', { table, column: edit.column.name })
    case 'rename_column':
      return emit('schema_column_renamed', { table, column: edit.column, new_name: edit.newName })
    default:
      return emit('schema_column_altered', { table, column: edit.column, operation: edit.operation })
  }
}

export async function dropManagedTable(changer: Changer, at: TableName, how: Cascade) {
  const found = await findTable(changer.caller, at)
  const ddl = managementOf(changer.caller).tables.drop(found, how)
  const { schema, table } = at
  const announce = (emit: EmitChange) => emit('schema_table_dropped', { table: `${schema}.${table}` })
  await runAudited(changer, { operation: 'drop_table', schema, object: table, table, announce }, ddl)
  return { schema_name: schema, table_name: table }
}

/** Drops a column, and returns the definition of its table. */
export async function dropManagedColumn(
  changer: Changer,
  at: TableName,
  dropped: Cascade & { readonly column: string },
) {
  const { column } = dropped
  const found = await findTable(changer.caller, at)
  await requireColumnRights(changer, found)
  const ddl = managementOf(changer.caller).columns.drop(found, column, dropped)
  const { schema, table } = at
  const announce = (emit: EmitChange) =>
    emit('schema_column_dropped', { table: `${schema}.${table}`, column })
  const object = `${table}.${column}`
  await runAudited(changer, { operation: 'drop_column', schema, object, table, announce }, ddl)
  return describeTable(changer.caller, schema, table)
}

/** 400 on a driver that cannot change the structure and for a reserved name, 404 without the table. */
export async function findTable(caller: GatewayCaller, { schema, table }: TableName): Promise<Table> {
  managementOf(caller).requireUnreserved(schema, table)
  const found = (await caller.backend.catalogue()).find(schema, table)
  if (found === undefined)
    throw fail('table_not_found', { details: { schema_name: schema, table_name: table } })
  return found
}

/** The table as the catalogue shows it now. */
async function describeTable({ backend }: GatewayCaller, schema: string, table: string) {
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
