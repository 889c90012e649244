import { fail } from '#databases/failures.ts'
import { type Body, type Naming, renaming, snakeCased } from '#databases/request/fields.ts'
import type { InsertRequest, Json, Row } from '#databases/request/request.ts'

/** Readers of the fields of a write: rows, new values, and the handling of conflicts. */

export function readRows(input: unknown, options: Naming, maximum: number): Row[] {
  const rows = Array.isArray(input) ? input : [input]
  if (rows.length > maximum)
    throw fail('too_many_rows', { details: { field: 'insert_body', maximum, given: rows.length } })
  if (input === undefined || rows.length === 0)
    throw fail('empty_write', { hint: 'insert_body has the rows.', details: { field: 'insert_body' } })
  return rows.map((row, index) => readRow(row, options, `insert_body[${index}]`))
}

function readRow(row: unknown, options: Naming, field: string): Row {
  if (typeof row !== 'object' || row === null || Array.isArray(row))
    throw fail('invalid_write', { hint: 'A row is an object: column to value.', details: { field } })
  // It was parsed from JSON text, so its values are Json.
  if (!options.snakeCase) return row as Row
  return Object.fromEntries(Object.entries(row).map(([key, value]) => [snakeCased(key), value]))
}

export function readConflict(body: Body, options: Naming, maximum: number): InsertRequest['conflict'] {
  const given = body.on_conflict
  if (given === undefined || given === null) {
    if (body.update_body === undefined || body.update_body === null) return undefined
    throw fail('invalid_conflict_target', {
      hint: 'update_body needs on_conflict.',
      details: { field: 'on_conflict' },
    })
  }
  const columns = typeof given === 'string' ? given.split(',', maximum + 1).map((name) => name.trim()) : given
  if (
    !Array.isArray(columns) ||
    columns.length === 0 ||
    !columns.every((name) => typeof name === 'string' && name !== '')
  )
    throw fail('invalid_conflict_target', {
      hint: 'on_conflict is the names of the columns: "tenant,email" or ["tenant", "email"].',
      details: { field: 'on_conflict' },
    })
  // Each name is in the text of every statement, and the database accepts a name any number of times.
  if (columns.length > maximum) throw fail('too_many_columns', { details: { field: 'on_conflict', maximum } })
  const update = body.update_body ?? undefined
  return {
    columns: columns.map(renaming(options)),
    update: update === undefined ? undefined : filled(readRow(update, options, 'update_body'), 'update_body'),
  }
}

/** `update_body` | `set` | `data` | `columns: [{ column, value }]`. */
export function readSet(body: Body, options: Naming): Row {
  const given = ['update_body', 'set', 'data'].filter(
    (field) => body[field] !== undefined && body[field] !== null,
  )
  const [field] = given
  const assignments = isAssignments(body.columns) ? body.columns : undefined
  if (given.length + (assignments ? 1 : 0) > 1)
    throw fail('invalid_write', { hint: 'Give the new values once.', details: { fields: given } })
  if (field !== undefined) return filled(readRow(body[field], options, field), field)
  if (assignments === undefined)
    throw fail('empty_write', {
      hint: 'update_body has the new values: column to value.',
      details: { field: 'update_body' },
    })
  const rename = renaming(options)
  return Object.fromEntries(assignments.map(({ column, value }) => [rename(column), value]))
}

type Assignments = readonly { readonly column: string; readonly value: Json }[]

export function isAssignments(columns: unknown): columns is Assignments {
  return (
    Array.isArray(columns) &&
    columns.length > 0 &&
    columns.every(
      (item) =>
        typeof item === 'object' && item !== null && typeof item.column === 'string' && 'value' in item,
    )
  )
}

function filled(row: Row, field: string): Row {
  if (Object.keys(row).length === 0) throw fail('empty_write', { details: { field } })
  return row
}
