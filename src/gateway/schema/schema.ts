import { requireAbility } from '#databases/drivers/abilities.ts'
import type { Backend } from '#databases/drivers/driver.ts'
import type { Catalogue, Column, Table } from '#databases/plan/catalogue.ts'
import { oneOf } from '#databases/request/fields.ts'
import { readTable } from '#databases/request/table-name.ts'
import { fail } from '../errors.ts'

/** The requested tables; all if absent. */
type Which = { readonly table_name?: string; readonly table_schema?: string | undefined }

/** `schema.table`, or a table and its schema, as elsewhere on the gateway (gateway.md 1). */
export function readWhich({ table_name, ...asked }: Which & { readonly schema_name?: string }): Which {
  const table_schema = oneOf(asked, ['table_schema', 'schema_name'], 'invalid_identifier')
  if (table_name === undefined) return { table_schema }
  if (!table_name.includes('.')) return { table_schema, table_name }
  const { schema, table } = readTable({ table_name, schema_name: table_schema })
  return { table_schema: schema, table_name: table }
}

/** Member names and values (`YES`, `NO`) are those of information_schema, which users of these lists expect. */
export async function listTables(backend: Backend, { table_schema }: Which) {
  const tables = sortedTables(await backend.catalogue()).filter(({ schema }) =>
    [undefined, schema].includes(table_schema),
  )
  return tables.map(({ schema, name, kind, estimatedRows }) => ({
    table_schema: schema,
    table_name: name,
    table_type: TYPES[kind],
    estimated_rows: estimatedRows,
  }))
}

const TYPES: Readonly<Record<Table['kind'], string>> = {
  table: 'BASE TABLE',
  'partitioned table': 'BASE TABLE',
  view: 'VIEW',
  'materialized view': 'MATERIALIZED VIEW',
  'foreign table': 'FOREIGN',
}

/** In column order. */
export async function listColumns(
  backend: Backend,
  { table_schema: schema = 'public', table_name: name = '' }: Which,
) {
  const table = (await backend.catalogue()).find(schema, name)
  if (table === undefined)
    throw fail('table_not_found', { details: { schema_name: schema, table_name: name } })
  const columns = [...table.columns.values()]
  const labels = await enumLabels(backend, columns)
  return columns.map((column) => ({
    column_name: column.name,
    data_type: column.type,
    column_default: column.fallback ?? null,
    is_nullable: column.nullable ? 'YES' : 'NO',
    base_type: column.base,
    is_writable: column.writable,
    enum_values: labels(column.cast),
  }))
}

/** The labels of a type that is an enum, or a domain of one. The database is asked only for a table that has such columns. */
async function enumLabels(
  backend: Backend,
  columns: readonly Column[],
): Promise<(cast: string) => string[] | null> {
  const hasEnums = columns.some(({ category }) => category === 'E')
  const types = hasEnums ? (await backend.declaredTypes?.())?.types : undefined
  return function labels(cast) {
    const type = types?.get(cast)
    if (type?.kind === 'domain') return labels(type.of.cast)
    return type?.kind === 'enum' ? [...type.labels] : null
  }
}

export async function listConstraints(backend: Backend, which: Which) {
  const tables = sortedTables(await backend.catalogue()).filter((table) =>
    isAsked(which, table.schema, table.name),
  )
  const read = (await backend.constraintDefinitions?.()) ?? []
  const definitions = new Map(read.map(([schema, table, name, text]) => [keyOf(schema, table, name), text]))
  return tables.flatMap((table) =>
    table.constraints.map(({ name, kind, columns, references, definition }) => ({
      table_schema: table.schema,
      table_name: table.name,
      constraint_name: name,
      constraint_type: kind.toUpperCase(),
      columns: [...columns],
      references: references
        ? { table_schema: references.schema, table_name: references.table, columns: [...references.columns] }
        : null,
      definition: definition ?? definitions.get(keyOf(table.schema, table.name, name)) ?? '',
    })),
  )
}

const keyOf = (...names: readonly string[]): string => JSON.stringify(names)

export async function listIndexes(backend: Backend, which: Which) {
  const indexes = (await requireAbility(backend, 'indexes')()).filter(({ schema, table }) =>
    isAsked(which, schema, table),
  )
  return indexes.map(({ schema, table, name, method, unique, primary, valid, columns, definition }) => ({
    table_schema: schema,
    table_name: table,
    index_name: name,
    method,
    is_unique: unique,
    is_primary: primary,
    is_valid: valid,
    columns: [...columns],
    definition,
  }))
}

const isAsked = ({ table_schema, table_name }: Which, schema: string, table: string): boolean =>
  (table_schema ?? schema) === schema && (table_name ?? table) === table

/** By schema and name, in the order of code units. */
export const sortedTables = ({ tables }: Catalogue): readonly Table[] => [...tables].sort(byName)

type Named = { readonly schema: string; readonly name: string }
export const byName = (left: Named, right: Named): number =>
  compare(left.schema, right.schema) || compare(left.name, right.name)

export const compare = (left: string, right: string): number => (left < right ? -1 : left > right ? 1 : 0)

export const isView = ({ kind }: Table): boolean => kind === 'view' || kind === 'materialized view'
