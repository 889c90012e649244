import type { Key, RowValues } from '#databases/drivers/changes.ts'
import type { RowsResult } from '#databases/drivers/driver.ts'
import { eachRow, membersOf } from '#databases/drivers/json-rows.ts'
import { EVERY_ROW, keyCondition } from '#databases/request/key-condition.ts'
import type { ColumnTerm, ReadRequest, TableName } from '#databases/request/request.ts'

/** Reads as the client's own role. */
type ReadRows = (request: ReadRequest) => Promise<RowsResult>

/** Values of columns by the JSON of the key. Undefined where several rows have one key. */
export async function rowValues(
  read: ReadRows,
  table: TableName,
  keys: readonly Key[],
  columns: readonly string[],
): Promise<RowValues | undefined> {
  const [first] = keys
  if (first === undefined) return new Map()
  const names = [...membersOf(first.json).keys()]
  const result = await read({
    kind: 'read',
    table,
    columns: [...termsOf(names, 'key'), ...termsOf(columns, 'value')],
    where: keyCondition(names, keys),
    sort: [],
    page: { limit: EVERY_ROW, offset: 0, open: false },
    count: undefined,
    head: false,
    stripNulls: false,
  })
  const chunks: Buffer[] = []
  for await (const chunk of result.json) chunks.push(chunk)
  const rows = [...eachRow(Buffer.concat(chunks).toString())].map((row) => [...membersOf(row).values()])
  const values = new Map(
    rows.map((members) => [
      objectOf(names, members),
      members.slice(names.length).map((json): string | null => JSON.parse(json)),
    ]),
  )
  return values.size < rows.length ? undefined : values
}

/** Under names that do not meet. */
const termsOf = (names: readonly string[], kind: string): ColumnTerm[] =>
  names.map((name, index) => ({ kind: 'column', name, alias: `${kind} ${index}` }))

const objectOf = (names: readonly string[], members: readonly string[]): string =>
  `{${names.map((name, index) => `${JSON.stringify(name)}:${members[index]}`).join(',')}}`
