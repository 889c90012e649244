import type { Session } from '#databases/drivers/scylla/session.ts'
import {
  type Catalogue,
  type Column,
  catalogueOf,
  type Index,
  type Table,
} from '#databases/plan/catalogue.ts'
import { isSystem } from '#kernel/config/scylla-url.ts'

/** Facts that plans of CQL need besides the names. */
export type ScyllaTable = Table & {
  readonly keyspace: string
  readonly columns: ReadonlyMap<string, ScyllaColumn>
  readonly partitionKey: readonly string[]
  readonly clusteringKey: readonly string[]
  /** The clustering columns in descending order. */
  readonly descending: ReadonlySet<string>
  readonly hasCounters: boolean
}
export type ScyllaColumn = Column & { readonly isIndexed: boolean }

/** Plans of this driver use its own catalogue. */
export const tableOf = (plan: { readonly table: Table }): ScyllaTable => plan.table as ScyllaTable

type ColumnRow = {
  readonly keyspace_name: string
  readonly table_name: string
  readonly column_name: string
  readonly kind: 'partition_key' | 'clustering' | 'static' | 'regular'
  readonly position: number
  readonly clustering_order: 'asc' | 'desc' | 'none'
  readonly type: string
}
type IndexRow = {
  readonly keyspace_name: string
  readonly table_name: string
  readonly index_name: string
  readonly kind: string
  readonly options: ReadonlyMap<string, string>
}
type ViewRow = { readonly keyspace_name: string; readonly view_name: string }

/**
 * Everything that the role may see, without the server's keyspaces. The keyspace of the client's URL is called `public` here, the schema of
 * unqualified names in the whole gateway. So each keyspace has one name, and rights cannot be bypassed.
 */
export async function readCatalogue(session: Session, ownKeyspace: string): Promise<Catalogue> {
  const [columns, indexes, views] = await Promise.all([
    session.system<ColumnRow>(
      'select keyspace_name, table_name, column_name, kind, position, clustering_order, type from system_schema.columns',
    ),
    session.system<IndexRow>(INDEX_TEXT),
    session.system<ViewRow>('select keyspace_name, view_name from system_schema.views'),
  ])
  const indexed = new Set(indexes.map((row) => key(row.keyspace_name, row.table_name, targetOf(row).column)))
  const seen = new Set(views.map((row) => key(row.keyspace_name, row.view_name)))
  const visible = columns.filter(({ keyspace_name }) => !isHidden(keyspace_name, ownKeyspace))
  const groups = Map.groupBy(visible, (row) => key(row.keyspace_name, row.table_name))
  const tables = [...groups].map(([name, rows]) => buildTable(rows, ownKeyspace, indexed, seen.has(name)))
  return catalogueOf(tables)
}

/** A keyspace named `public` could not be distinguished from the client's own. */
const isHidden = (keyspace: string, ownKeyspace: string): boolean =>
  isSystem(keyspace) || (keyspace === 'public' && ownKeyspace !== 'public')

const schemaOf = (keyspace: string, ownKeyspace: string): string =>
  keyspace === ownKeyspace ? 'public' : keyspace

export async function readIndexes(session: Session, ownKeyspace: string): Promise<Index[]> {
  const rows = await session.system<IndexRow>(INDEX_TEXT)
  return rows
    .filter(({ keyspace_name }) => !isHidden(keyspace_name, ownKeyspace))
    .map((row) => ({
      schema: schemaOf(row.keyspace_name, ownKeyspace),
      table: row.table_name,
      name: row.index_name,
      method: row.options.get('class_name') ?? row.kind.toLowerCase(),
      unique: false,
      primary: false,
      valid: true,
      columns: [targetOf(row).column],
      definition: targetOf(row).target,
    }))
}

const INDEX_TEXT = 'select keyspace_name, table_name, index_name, kind, options from system_schema.indexes'

/** `pages`, `"Pages"`, `values(tags)`, `entries(meta)`; ScyllaDB writes local indexes as JSON. */
function targetOf({ options }: IndexRow): { readonly target: string; readonly column: string } {
  const target = options.get('target') ?? ''
  const name = /^(?:values|keys|entries|full)\((.*)\)$/s.exec(target)?.[1] ?? target
  return { target, column: name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name }
}

function buildTable(
  rows: readonly ColumnRow[],
  ownKeyspace: string,
  indexed: ReadonlySet<string>,
  isView: boolean,
): ScyllaTable {
  const [{ keyspace_name: keyspace, table_name: name } = { keyspace_name: '', table_name: '' }] = rows
  const columnsOfKind = (kind: ColumnRow['kind']) =>
    rows
      .filter((row) => row.kind === kind)
      .sort((a, b) => a.position - b.position)
      .map((row) => row.column_name)
  const [partitionKey, clusteringKey] = [columnsOfKind('partition_key'), columnsOfKind('clustering')]
  const primaryKey = [...partitionKey, ...clusteringKey]
  const others = rows.map((row) => row.column_name).filter((column) => !primaryKey.includes(column))
  const byName = new Map(rows.map((row) => [row.column_name, row]))
  const columns = [...primaryKey, ...others].flatMap((column) => {
    const row = byName.get(column)
    const isIndexed = indexed.has(key(keyspace, name, column))
    return row ? [[column, buildColumn(row, isIndexed)] as const] : []
  })
  return {
    schema: schemaOf(keyspace, ownKeyspace),
    keyspace,
    name,
    kind: isView ? 'materialized view' : 'table',
    estimatedRows: 0,
    columns: new Map(columns),
    primaryKey,
    partitionKey,
    clusteringKey,
    descending: new Set(rows.filter((row) => row.clustering_order === 'desc').map((row) => row.column_name)),
    hasCounters: rows.some(({ type }) => type === 'counter'),
    constraints: [
      {
        name: 'primary key',
        kind: 'primary key',
        columns: primaryKey,
        references: undefined,
        definition: '',
      },
    ],
  }
}

function buildColumn({ column_name, kind, type }: ColumnRow, isIndexed: boolean): ScyllaColumn {
  const base = baseOf(type)
  return {
    name: column_name,
    type,
    cast: type,
    category: base.startsWith('_') ? 'A' : base === 'jsonb' ? 'C' : NUMBERS.has(base) ? 'N' : 'S',
    base,
    nullable: kind === 'regular' || kind === 'static',
    fallback: undefined,
    writable: true,
    identity: undefined,
    isIndexed,
  }
}

/** The type of PostgreSQL with the same JSON form; composite types are objects or arrays. */
function baseOf(type: string): string {
  const [, outer = type, inner = ''] = /^(\w+)<(.*)>$/.exec(type) ?? []
  if (outer === 'frozen') return baseOf(inner)
  if (outer === 'list' || outer === 'set') return `_${baseOf(inner)}`
  if (outer === 'vector') return `_${baseOf(inner.slice(0, inner.lastIndexOf(',')).trim())}`
  return BASES.get(outer) ?? 'jsonb'
}

const BASES = new Map([
  ...['text', 'varchar', 'ascii'].map((name) => [name, 'text'] as const),
  ...['uuid', 'timeuuid'].map((name) => [name, 'uuid'] as const),
  ...['tinyint', 'smallint'].map((name) => [name, 'int2'] as const),
  ...['bigint', 'counter'].map((name) => [name, 'int8'] as const),
  ...['varint', 'decimal'].map((name) => [name, 'numeric'] as const),
  ['int', 'int4'],
  ['float', 'float4'],
  ['double', 'float8'],
  ['boolean', 'bool'],
  ['timestamp', 'timestamptz'],
  ['date', 'date'],
  ['time', 'time'],
  ['duration', 'interval'],
  ['blob', 'bytea'],
  ['inet', 'inet'],
])
const NUMBERS = new Set(['int2', 'int4', 'int8', 'numeric', 'float4', 'float8'])

const key = (...names: readonly string[]): string => JSON.stringify(names)
