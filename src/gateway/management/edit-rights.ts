import type { NewColumn, TableEdit, TableUse } from '#databases/drivers/management.ts'
import type { Table } from '#databases/plan/catalogue.ts'
import { type Action, type TableRight, toRead } from '#databases/plan/rights.ts'
import type { TableName } from '#databases/request/request.ts'
import { readTable } from '#databases/request/table-name.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import {
  bypassesPolicies,
  requirePolicyBypass,
  requireRightBeyondPolicies,
  rightsOf,
} from '../caller/caller-rights.ts'
import { pipelinesNaming } from '../pipelines/registry.ts'
import { routesNaming } from '../public-routes/public-routes.ts'
import { clientsOfDatabase, isProtected } from '../same-database.ts'
import { type Changer, managementOf } from './change.ts'

/**
 * The rights to rows that edits of a table need, by all that they can make happen (gateway.md 10): they change rows and what later rows are,
 * their success tells about values, and functions, routes, policies and pipelines find other data under a name.
 */
export async function requireEditRights(
  changer: Changer,
  table: Table,
  edits: readonly TableEdit[],
): Promise<void> {
  const rights = rightsOf(changer.caller)
  const rightsTo = ofTable(table)
  const renamed = edits.findLast((edit) => edit.operation === 'rename_table')?.newName
  rights.require([
    ...(deletesByReference(table, edits) ? rightsTo('delete') : []),
    ...(edits.every(addsUnusedColumn) ? [] : rightsTo('read', 'write')),
    ...(renamed === undefined
      ? []
      : rightsTo(...gained(changer.caller, { ...nameOf(table), table: renamed }))),
    ...referencedBy(edits.flatMap(newColumns)),
  ])
  if (edits.some(tellsOfRows)) await requireAllRows(changer)
  if (edits.some(writesOthersRows)) requirePolicyBypass(changer.caller)
  const names = [nameOf(table), { ...nameOf(table), table: renamed ?? table.name }]
  if (edits.some(givesName)) await requireNamedRows(changer, names)
  const needed = rightsTo(...(renamed === undefined ? (['read', 'write'] as const) : (['delete'] as const)))
  if (needed.every(rights.may)) return
  const { isNamed, deletes } = await useOf(changer, names)
  if (renamed === undefined ? isNamed : deletes) rights.require(needed)
}

/** Rows that refer to a row tell whether there is such a value. */
export async function requireReferences(changer: Changer, columns: readonly NewColumn[]): Promise<void> {
  const needed = referencedBy(columns)
  rightsOf(changer.caller).require(needed)
  if (needed.length > 0) await requireAllRows(changer)
}

/** A unique index tells whether there are equal values. */
export async function requireUniqueRights(changer: Changer, table: Table): Promise<void> {
  rightsOf(changer.caller).require([toRead(table)])
  await requireAllRows(changer)
}

/** For a change that tells about values: also in rows that policies of a client of the database hide from the key. */
async function requireAllRows({ caller, clients }: Changer): Promise<void> {
  if (await isProtected(clients, caller.backend))
    requireRightBeyondPolicies(caller, 'gateway.bypass_row_level_security')
}

/** Routes and functions that find data by these names may run as the owner: they would show rows that policies hide from the key. */
async function requireNamedRows(changer: Changer, names: readonly TableName[]): Promise<void> {
  const { caller } = changer
  if (caller.client.rowLevelSecurity === undefined || bypassesPolicies(caller)) return
  if ((await useOf(changer, names)).isInCode) requirePolicyBypass(caller)
}

/** Without the column, a query may find another one of its name. */
export async function requireColumnRights(changer: Changer, table: Table): Promise<void> {
  const rights = rightsOf(changer.caller)
  await requireNamedRows(changer, [nameOf(table)])
  if (rights.may(toRead(table))) return
  const { isNamed } = await useOf(changer, [nameOf(table)])
  if (isNamed) rights.require([toRead(table)])
}

const nameOf = ({ schema, name }: Table): TableName => ({ schema, table: name })

const ofTable =
  (table: Table) =>
  (...actions: readonly Action[]): readonly TableRight[] =>
    actions.map((action) => ({ ...nameOf(table), action }))

const newColumns = (edit: TableEdit): readonly NewColumn[] =>
  edit.operation === 'add_column' ? [edit.column] : []

/** A column that is null in all rows, and that only those who name it write. */
const addsUnusedColumn = (edit: TableEdit): boolean =>
  newColumns(edit).some((column) => column.nullable !== false && !hasDefault(column) && !isChecked(column))

const hasDefault = ({ default_expression, data_type }: NewColumn): boolean =>
  default_expression !== undefined || /serial/i.test(data_type)

const isChecked = ({ primary_key, unique, references }: NewColumn): boolean =>
  primary_key === true || unique === true || references !== undefined

/** Its success tells about the values of rows, or how many there are. */
const tellsOfRows = (edit: TableEdit): boolean =>
  edit.operation === 'alter_type' ||
  edit.operation === 'set_not_null' ||
  newColumns(edit).some((column) => isChecked(column) || (column.nullable === false && !hasDefault(column)))

/** A default is a value in all rows or in later ones, also in those that policies hide: one that a policy may ask for. */
const writesOthersRows = (edit: TableEdit): boolean =>
  edit.operation === 'set_default' || edit.operation === 'drop_default' || newColumns(edit).some(hasDefault)

/** A query of this name finds other data than before. */
const givesName = ({ operation }: TableEdit): boolean =>
  operation === 'add_column' || operation === 'rename_column' || operation === 'rename_table'

const referencedBy = (columns: readonly NewColumn[]): readonly TableRight[] =>
  columns.flatMap(({ references }) =>
    references ? [{ ...readTable({ table_name: references.table }), action: 'read' as const }] : [],
  )

/** Rows refer to a row whose deletion deletes them, now or when the column is written. */
const deletesByReference = (table: Table, edits: readonly TableEdit[]): boolean =>
  edits.flatMap(newColumns).some(({ references }) => references?.on_delete === 'cascade') ||
  edits.some(
    (edit, index) =>
      edit.operation === 'set_default' && cascades(table, formerName(edits.slice(0, index), edit.column)),
  )

const cascades = ({ constraints }: Table, column: string): boolean =>
  constraints.some(({ columns, references }) => references?.cascades === true && columns.includes(column))

/** The name of a column before these edits. */
const formerName = (edits: readonly TableEdit[], column: string): string =>
  edits.reduceRight(
    (name, edit) => (edit.operation === 'rename_column' && edit.newName === name ? edit.column : name),
    column,
  )

/** Rights are by name: a new name must not give the key rows that it may not reach by the present one. */
const gained = (caller: GatewayCaller, renamed: TableName): readonly Action[] =>
  ACTIONS.filter((action) => rightsOf(caller).may({ ...renamed, action }))

const ACTIONS = ['read', 'write', 'delete'] as const

async function useOf(changer: Changer, tables: readonly TableName[]): Promise<TableUse> {
  const { kernel, caller, clients, pipelines } = changer
  const mayHave = clientsOfDatabase(clients, caller.backend)
  const [routes, inDatabase, ofPipelines] = await Promise.all([
    routesNaming(kernel, mayHave, tables),
    managementOf(caller).tables.use(tables),
    pipelinesNaming(pipelines.all(), mayHave, tables),
  ])
  return {
    isNamed: routes.isNamed || inDatabase.isNamed || ofPipelines,
    isInCode: routes.isInCode || inDatabase.isInCode || ofPipelines,
    deletes: routes.deletes || inDatabase.deletes,
  }
}
