import type { ScyllaTable } from '#databases/drivers/scylla/catalogue.ts'
import type { Cells, Page } from '#databases/drivers/scylla/cells.ts'
import { byKeysText, type ColumnValues } from '#databases/drivers/scylla/cql.ts'
import { writers } from '#databases/drivers/scylla/reads.ts'
import { rowText } from '#databases/drivers/scylla/rows.ts'
import type { Session } from '#databases/drivers/scylla/session.ts'
import { type CqlType, elementOf, membersOf } from '#databases/drivers/scylla/types.ts'
import { orderOf } from '#databases/drivers/scylla/value-order.ts'
import { bound } from '#databases/drivers/scylla/values.ts'
import type { Output } from '#databases/plan/plan.ts'

/** A row of a request with its key and its partition's key, as the server compares them. */
export type RowWithKey = { readonly row: ColumnValues; readonly key: string; readonly partition: string }

export async function withKeys(
  session: Session,
  table: ScyllaTable,
  rows: readonly ColumnValues[],
): Promise<RowWithKey[]> {
  const { primaryKey, partitionKey } = table
  const types = await keyTypes(session, table)
  return rows.map((row) => {
    const values = primaryKey.map((name, index) => bound(row.get(name) ?? null, typeAt(types, index), name))
    const parts = partsOf(table, types, values)
    return { row, key: parts.join(), partition: parts.slice(0, partitionKey.length).join() }
  })
}

/** Types of the parameters of the statement that finds rows by key; the last one is a list of the clustering columns. */
async function keyTypes(session: Session, table: ScyllaTable): Promise<readonly CqlType[]> {
  const parameters = await session.parameters(byKeysText(table, [], []).text)
  const types = parameters.map(({ type }) => type)
  const last = table.clusteringKey.length > 0 ? types.pop() : undefined
  return last ? [...types, ...membersOf(elementOf(last))] : types
}

function typeAt(types: readonly CqlType[], index: number): CqlType {
  const type = types[index]
  if (type === undefined) throw new Error('The server has no type for a column of the key')
  return type
}

/** The server distinguishes partitions by bytes, so 1.5 and 1.50 are two; inside a partition it compares values. */
const partsOf = (
  { partitionKey }: ScyllaTable,
  types: readonly CqlType[],
  values: readonly (Buffer | null)[],
): string[] =>
  values.map((value, index) =>
    index < partitionKey.length
      ? (value?.toString('hex') ?? '')
      : JSON.stringify(orderOf(value, typeAt(types, index))),
  )

export type StoredRow = { readonly key: string; readonly text: string }
/** How a row is written. */
export type RowShape = { readonly output: readonly Output[]; readonly stripNulls: boolean }

/** Statements that run at once. Serial ones of the same partition would conflict. */
const MAX_CONCURRENT = 16
/** The most keys that ScyllaDB takes in one statement. */
const MAX_KEYS = 100

/** Finds the existing rows, with the JSON of each. Serial: in the state that a conditional write would see. */
export async function findByKeys(
  session: Session,
  table: ScyllaTable,
  rows: readonly RowWithKey[],
  shape: RowShape & { readonly isSerial: boolean },
): Promise<ReadonlyMap<string, StoredRow>> {
  const parts = [...Map.groupBy(rows, ({ partition }) => partition).values()].flatMap(portions)
  const found: StoredRow[] = []
  while (parts.length > 0) {
    const next = parts.splice(0, shape.isSerial ? 1 : MAX_CONCURRENT)
    found.push(
      ...(await Promise.all(next.map((keys) => findInPartition(session, table, keys, shape)))).flat(),
    )
  }
  return new Map(found.map((row) => [row.key, row]))
}

const portions = (rows: readonly RowWithKey[]): (readonly RowWithKey[])[] =>
  Array.from({ length: Math.ceil(rows.length / MAX_KEYS) }, (_, index) =>
    rows.slice(index * MAX_KEYS, (index + 1) * MAX_KEYS),
  )

async function findInPartition(
  session: Session,
  table: ScyllaTable,
  rows: readonly RowWithKey[],
  { output, stripNulls, isSerial }: RowShape & { readonly isSerial: boolean },
): Promise<StoredRow[]> {
  const statement = byKeysText(
    table,
    output,
    rows.map(({ row }) => row),
  )
  const found: StoredRow[] = []
  let after: string | undefined
  do {
    const page = await session.page(statement, { size: 1_000, after, isSerial })
    const columns = writers(page, output, table.primaryKey.length)
    const key = keyReader(page, table)
    for (const row of page.rows) found.push({ key: key(row), text: rowText(row, columns, stripNulls) })
    after = page.after
  } while (after !== undefined)
  return found
}

/** The key of a found row; its columns come first in the statement. */
function keyReader({ columns }: Page, table: ScyllaTable): (row: Cells) => string {
  const types = columns.map(({ type }) => type)
  return (row) =>
    partsOf(
      table,
      types,
      table.primaryKey.map((_, index) => row[index] ?? null),
    ).join()
}
