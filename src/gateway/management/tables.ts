import type { Cascade, NewColumn, TableDefinition, TableEdit } from '#databases/drivers/management.ts'
import type { Table } from '#databases/plan/catalogue.ts'
import type { TableName } from '#databases/request/request.ts'
import { readTable } from '#databases/request/table-name.ts'
import type { GatewayCaller } from '../caller.ts'
import { rightsOf } from '../caller-rights.ts'
import { fail } from '../errors.ts'
import { namesTable } from '../public-routes/public-routes.ts'
import { audited, type Changer, type EmitChange, managementOf } from './change.ts'

/** Creates a table and returns its definition. An existing name gets 409. */
export async function createManagedTable(changer: Changer, asked: TableDefinition) {
  const { schema, table } = asked
  const written = await managementOf(changer.caller).tables.create(asked)
  requireReferences(changer.caller, { schema, table }, asked.columns)
  const announce = (emit: EmitChange) => emit('schema_table_created', { table: `${schema}.${table}` })
  await audited(changer, { operation: 'create_table', schema, object: table, table, announce }, written)
  return describeTable(changer.caller, schema, table)
}

/** Changes a table, all or nothing, and returns its definition. */
export async function editManagedTable(changer: Changer, at: TableName, edits: readonly TableEdit[]) {
  const found = await findTable(changer.caller, at)
  const renamed = edits.findLast((edit) => edit.operation === 'rename_table')
  if (renamed !== undefined) requireSameRights(changer.caller, at, renamed.newName)
  if (edits.some(isRenaming)) await requirePublicRead(changer, at, renamed?.newName)
  if (edits.some(bindsExistingRows)) rightsOf(changer.caller).require([{ ...at, action: 'delete' }])
  const written = await managementOf(changer.caller).tables.edit(found, edits)
  const added = edits.flatMap((edit) => (edit.operation === 'add_column' ? [edit.column] : []))
  requireReferences(changer.caller, at, added)
  const { schema, table } = at
  const announce = (emit: EmitChange) => announceEdits(emit, `${schema}.${table}`, edits)
  await audited(changer, { operation: 'edit_table', schema, object: table, table, announce }, written)
  return describeTable(changer.caller, schema, renamed?.newName ?? table)
}

/** A foreign key shows which values the other table has: a row that refers to none of them is refused. */
function requireReferences(caller: GatewayCaller, own: TableName, columns: readonly NewColumn[]): void {
  const others = columns
    .flatMap(({ references }) => (references ? [readTable({ table_name: references.table })] : []))
    .filter(({ schema, table }) => schema !== own.schema || table !== own.table)
  rightsOf(caller).require(others.map((other) => ({ ...other, action: 'read' })))
}

/** All rows would refer to the row of the default, and its deletion would delete them. */
const bindsExistingRows = (edit: TableEdit): boolean =>
  edit.operation === 'add_column' &&
  edit.column.default_expression !== undefined &&
  edit.column.references?.on_delete === 'cascade'

/** Rights are by name: a new name must not give the key rows that it may not reach by the present one. */
function requireSameRights(caller: GatewayCaller, { schema, table }: TableName, newName: string): void {
  const rights = rightsOf(caller)
  const gained = ACTIONS.filter((action) => rights.may({ schema, table: newName, action }))
  if (gained.length > 0) rights.require(gained.map((action) => ({ schema, table, action })))
}

const ACTIONS = ['read', 'write', 'delete'] as const

const isRenaming = ({ operation }: TableEdit): boolean =>
  operation === 'rename_table' || operation === 'rename_column'

/**
 * A public route fixes a table, columns and conditions by name, so a change that gives these names to other data, or adds the column of a
 * condition anew, shows it to everyone.
 */
async function requirePublicRead(
  { kernel, caller }: Changer,
  at: TableName,
  newName = at.table,
): Promise<void> {
  const names = [at, { schema: at.schema, table: newName }]
  if (await namesTable(kernel, caller.client.name, names))
    rightsOf(caller).require([{ ...at, action: 'read' }])
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
  const written = managementOf(changer.caller).tables.drop(found, how)
  const { schema, table } = at
  const announce = (emit: EmitChange) => emit('schema_table_dropped', { table: `${schema}.${table}` })
  await audited(changer, { operation: 'drop_table', schema, object: table, table, announce }, written)
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
  await requirePublicRead(changer, at)
  const written = managementOf(changer.caller).columns.drop(found, column, dropped)
  const { schema, table } = at
  const announce = (emit: EmitChange) =>
    emit('schema_column_dropped', { table: `${schema}.${table}`, column })
  const object = `${table}.${column}`
  await audited(changer, { operation: 'drop_column', schema, object, table, announce }, written)
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
