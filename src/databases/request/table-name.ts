import { fail } from '#databases/failures.ts'
import { type Body, oneOf, text } from '#databases/request/fields.ts'
import type { TableName } from '#databases/request/request.ts'

/** `table` | `table_name` | `view_name` (gateway.md 1). */
export const readTableName = (body: Body): string | undefined =>
  oneOf(body, ['table_name', 'table', 'view_name'], 'missing_table')

/** The table, as `schema.table` or with `schema_name`. */
export function readTable(body: Body): TableName {
  const name = readTableName(body)
  const schema = text(body, 'schema_name')
  if (name === undefined) throw fail('missing_table', { details: { field: 'table_name' } })
  if (name.length > MAX_PATH_LENGTH) throw badName('table_name', name)
  if (schema !== undefined && schema.length > MAX_PATH_LENGTH) throw badName('schema_name', schema)
  const path = splitPath(name)
  const [first = '', second, ...rest] = path
  if (rest.length > 0 || path.some((part) => part === '')) throw badName('table_name', name)
  if (second === undefined) return { schema: schema ?? 'public', table: first }
  if (schema !== undefined && schema !== first) throw badName('schema_name', schema)
  return { schema: first, table: second }
}

/** Two names of 63 bytes in quotes, with room to spare. */
const MAX_PATH_LENGTH = 300

/** Splits `a.b`; a part with dots is in double quotes. A quote inside a name is an ordinary character. */
function splitPath(name: string): string[] {
  const parts: string[] = []
  for (let at = 0; at <= name.length; ) {
    const end = endOfPart(name, at)
    const part = name.slice(at, end)
    const isQuoted = part.length > 1 && part.startsWith('"') && part.endsWith('"')
    parts.push(isQuoted ? part.slice(1, -1).replaceAll('""', '"') : part)
    at = end + 1
  }
  return parts
}

/** The end of the part that begins at `from`: after its closing quote if a dot or the end follows, else at the next dot. */
function endOfPart(name: string, from: number): number {
  const dot = name.indexOf('.', from)
  const plain = dot < 0 ? name.length : dot
  if (name[from] !== '"') return plain
  for (let at = name.indexOf('"', from + 1); at >= 0; at = name.indexOf('"', at + 2)) {
    if (name[at + 1] === '"') continue
    const isEnd = at + 1 === name.length || name[at + 1] === '.'
    return isEnd ? at + 1 : plain
  }
  return plain
}

const badName = (field: string, value: string) =>
  fail('invalid_identifier', {
    hint: 'Write schema.table, or table_name and schema_name.',
    details: { field, value: value.slice(0, 200) },
  })
