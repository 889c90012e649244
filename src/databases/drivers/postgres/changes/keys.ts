import type { Key, KeyChange } from '#databases/drivers/changes.ts'
import type { KeyColumn } from '#databases/drivers/postgres/changes/note-function.ts'
import { placeOf, SLACK } from '#databases/drivers/postgres/protocol/byte-copies.ts'
import { formatOf } from '#databases/drivers/postgres/protocol/column-formats.ts'
import { writeJsonValue } from '#databases/drivers/postgres/protocol/json-values.ts'

type Op = KeyChange['op']

/** The last change of each key of a table, in the order of the changes. */
export type Keys = Map<string, KeyChange>

export function addChange(keys: Keys, op: Op, key: Key): void {
  const before = keys.get(key.json)
  // At the end, because a key that was deleted and inserted again comes after what was inserted meanwhile.
  keys.delete(key.json)
  keys.set(key.json, { op: before === undefined ? op : merged(before.op, op), key })
}

function merged(before: Op, op: Op): Op {
  if (op === 'delete') return 'delete'
  if (before === 'insert') return 'insert'
  return 'update'
}

/** Writes values of a key as a fetch writes them. */
export function createKeyWriter(columns: readonly KeyColumn[]): (values: readonly string[]) => Key {
  const parts = columns.map(({ name, type }) => ({
    head: `${JSON.stringify(name)}:`,
    format: formatOf(type),
  }))
  return (values) => ({
    values,
    json: `{${parts.map(({ head, format }, index) => head + jsonOf(values[index] ?? '', format)).join(',')}}`,
  })
}

function jsonOf(text: string, format: ReturnType<typeof formatOf>): string {
  const bytes = Buffer.from(text)
  // At most six bytes for each, two quotes, and what copies write beyond their end.
  const out = placeOf(Buffer.alloc(bytes.length * 6 + 16 + SLACK))
  return out.bytes.toString('utf8', 0, writeJsonValue(format, placeOf(bytes), 0, bytes.length, out, 0))
}
