import type { NewColumn, RunQuery, SchemaStatements, TableEdit } from '#databases/drivers/management.ts'
import { columnDefinition, dataTypeText } from '#databases/drivers/postgres/sql/ddl/columns.ts'
import { explainDefinition } from '#databases/drivers/postgres/sql/ddl/explanations.ts'
import { requireOwnColumns } from '#databases/drivers/postgres/sql/ddl/managed-id.ts'
import {
  existingColumn,
  existingTable,
  newName,
  requireUnreserved,
} from '#databases/drivers/postgres/sql/ddl/names.ts'
import { defaultText } from '#databases/drivers/postgres/sql/defaults.ts'
import { grantAddedColumns } from '#databases/drivers/postgres/sql/policies/column-grants.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'
import { fail } from '#databases/failures.ts'
import type { Table } from '#databases/plan/catalogue.ts'

/** A table as the edits so far leave it: its name, its columns with whether they are text, and which of them are new. */
type TableDraft = {
  name: string
  readonly columns: Map<string, boolean>
  readonly added: Set<string>
}

export async function editTable(table: Table, edits: readonly TableEdit[]): Promise<SchemaStatements> {
  existingTable(table)
  const columns = new Map([...table.columns].map(([name, { category }]) => [name, category === STRING]))
  const draft: TableDraft = { name: table.name, columns, added: new Set() }
  const statements: string[] = []
  for (const edit of edits) {
    const target = `${quoteName(table.schema)}.${quoteName(draft.name)}`
    statements.push(`alter table ${target} ${await editText(table.schema, draft, edit)}`)
  }
  return {
    statements,
    check: requireOwnColumns(table, edits.flatMap(touchedColumn)),
    async verify(query) {
      if (edits.some(addsSequence)) await grantSequences(table.schema, draft)(query)
      if (draft.added.size > 0) await grantAddedColumns(table.schema, draft.name, [...draft.added])(query)
    },
    explain: explainDefinition,
  }
}

const addsSequence = (edit: TableEdit): boolean =>
  edit.operation === 'add_column' && edit.column.data_type.toLowerCase().includes('serial')

/** Roles that insert by policies of the gateway need a sequence that comes later, too; set.ts has given them the others. */
const grantSequences =
  (schema: string, draft: TableDraft) =>
  async (query: RunQuery): Promise<void> => {
    const grants = await query<{ text: string }>(SEQUENCE_GRANTS_SQL, [schema, draft.name])
    for (const { text } of grants) await query(text, [])
  }

const SEQUENCE_GRANTS_SQL = `
select distinct format('grant usage on sequence %s to %I', s.oid::regclass, r.rolname) as text
from pg_class c join pg_namespace n on n.oid = c.relnamespace
join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = c.oid and d.refobjsubid > 0
  and d.classid = 'pg_class'::regclass and d.deptype = 'a'
join pg_class s on s.oid = d.objid and s.relkind = 'S'
cross join aclexplode(c.relacl) g join pg_roles r on r.oid = g.grantee
where n.nspname = $1 and c.relname = $2 and g.privilege_type = 'INSERT' and g.grantee <> c.relowner
  and exists (select from pg_policy p where p.polrelid = c.oid and starts_with(obj_description(p.oid, 'pg_policy'), 'Set by the gateway: '))`

const touchedColumn = (edit: TableEdit): readonly string[] =>
  edit.operation === 'add_column' || edit.operation === 'rename_table' ? [] : [edit.column]

async function editText(schema: string, draft: TableDraft, edit: TableEdit): Promise<string> {
  switch (edit.operation) {
    case 'add_column':
      return addColumn(draft, edit.column)
    case 'rename_column':
      return renameColumn(draft, edit)
    case 'rename_table':
      return renameTable(schema, draft, edit.newName)
    default:
      return `alter column ${existingColumn(draft.columns, edit.column)} ${await alteration(draft, edit)}`
  }
}

async function addColumn({ columns, added }: TableDraft, column: NewColumn): Promise<string> {
  const definition = await columnDefinition(column)
  columns.set(column.name, isText(dataTypeText(column.name, column.data_type)))
  added.add(column.name)
  return `add column ${definition}${column.primary_key ? ' primary key' : ''}`
}

function renameColumn({ columns, added }: TableDraft, { column, newName: name }: RenamedColumn): string {
  const text = `rename column ${existingColumn(columns, column)} to ${newName(name, 'operations.new_name')}`
  columns.set(name, columns.get(column) === true)
  columns.delete(column)
  if (added.delete(column)) added.add(name)
  return text
}

function renameTable(schema: string, draft: TableDraft, name: string): string {
  requireUnreserved(schema, name)
  draft.name = name
  return `rename to ${newName(name, 'operations.new_name')}`
}

async function alteration({ columns }: TableDraft, edit: ColumnEdit): Promise<string> {
  switch (edit.operation) {
    case 'set_default':
      return `set default ${await defaultText(edit.expression, edit.column)}`
    case 'drop_default':
      return 'drop default'
    case 'set_not_null':
      return 'set not null'
    case 'drop_not_null':
      return 'drop not null'
    case 'alter_type':
      return typeText(columns, edit.column, edit.dataType)
  }
}

/**
 * Text is converted to other types as in a literal, which PostgreSQL does not do by itself. For all other types its own conversion
 * applies: an explicit cast would cut values off without an error.
 */
function typeText(columns: TableDraft['columns'], column: string, dataType: string): string {
  const type = dataTypeText(column, dataType)
  if (type.includes('serial'))
    throw fail('invalid_data_type', {
      message: `${type} is only for new columns`,
      details: { column: column.slice(0, 63), data_type: type },
    })
  const isConverted = columns.get(column) === true && !isText(type)
  columns.set(column, isText(type))
  return `type ${type}${isConverted ? ` using ${quoteName(column)}::${type}` : ''}`
}

/** pg_type.typcategory of text. */
const STRING = 'S'
const TEXTS: ReadonlySet<string> = new Set(['text', 'varchar', 'char', 'citext'])
const isText = (type: string): boolean => !type.endsWith('[]') && TEXTS.has(type.split('(', 1)[0] ?? '')

type RenamedColumn = Extract<TableEdit, { operation: 'rename_column' }>
type ColumnEdit = Exclude<TableEdit, { operation: 'add_column' | 'rename_column' | 'rename_table' }>
