import { requireAbility } from '#databases/drivers/abilities.ts'
import type { Index, Table } from '#databases/plan/catalogue.ts'
import type { TableName } from '#databases/request/request.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { fail } from '../errors.ts'
import { type Changer, type EmitChange, managementOf, runAudited } from './change.ts'
import { requireUniqueRights } from './edit-rights.ts'
import { findTable } from './tables.ts'

type NewIndex = {
  readonly name: string | undefined
  readonly columns: readonly string[]
  readonly unique: boolean
  readonly method: string
}

export async function createManagedIndex(changer: Changer, at: TableName, asked: NewIndex) {
  const { caller } = changer
  const table = await findTable(caller, at)
  if (asked.unique) await requireUniqueRights(changer, table)
  const name = asked.name ?? indexName(table, asked.columns)
  const ddl = managementOf(caller).indexes.create({ ...asked, table, name })
  const { schema } = at
  const announce = (emit: EmitChange) =>
    emit('schema_index_created', { table: `${schema}.${at.table}`, index: name })
  await runAudited(
    changer,
    { operation: 'create_index', schema, object: name, table: at.table, announce },
    ddl,
  )
  const made = await findIndex(caller, schema, name)
  return made === undefined ? { schema_name: schema, table_name: at.table, index_name: name } : describe(made)
}

/** `books_author_title_idx`, as PostgreSQL names them, with characters of a plain name and at most 63 bytes. */
function indexName({ name }: Table, columns: readonly string[]): string {
  const plain = `${name}_${columns.join('_')}`.replace(/[^\w$]/g, '_').replace(/^(?=[\d$])/, '_')
  return `${plain.slice(0, 63 - '_idx'.length)}_idx`
}

export async function dropManagedIndex(changer: Changer, schema: string, name: string) {
  const { caller } = changer
  const management = managementOf(caller)
  management.requireUnreserved(schema, name)
  const index = await findIndex(caller, schema, name)
  if (index === undefined)
    throw fail('object_not_found', {
      message: 'There is no such index',
      details: { schema_name: schema, index_name: name },
    })
  const announce = (emit: EmitChange) =>
    emit('schema_index_dropped', { table: `${schema}.${index.table}`, index: name })
  await runAudited(
    changer,
    { operation: 'drop_index', schema, object: name, table: index.table, announce },
    management.indexes.drop(index),
  )
  return { schema_name: schema, table_name: index.table, index_name: name }
}

async function findIndex(
  { backend }: GatewayCaller,
  schema: string,
  name: string,
): Promise<Index | undefined> {
  const indexes = await requireAbility(backend, 'indexes')({ schema, name })
  return indexes.find((index) => index.schema === schema && index.name === name)
}

const describe = ({ schema, table, name, method, unique, columns, definition }: Index) => ({
  schema_name: schema,
  table_name: table,
  index_name: name,
  method,
  unique,
  columns: [...columns],
  definition,
})
