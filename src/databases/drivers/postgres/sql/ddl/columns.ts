import type { NewColumn } from '#databases/drivers/management.ts'
import { badName, newName, requireUnreserved } from '#databases/drivers/postgres/sql/ddl/names.ts'
import { defaultText } from '#databases/drivers/postgres/sql/defaults.ts'
import { fail } from '#databases/failures.ts'
import { FURTHER_TYPES, NUMBER_TYPES, TYPE_ALIASES } from '#databases/plan/data-types.ts'

export const ALLOWED_COLUMN_DATA_TYPES = [
  ...NUMBER_TYPES,
  ...['smallserial', 'serial', 'bigserial', 'text', 'varchar', 'char', 'boolean', 'date', 'time', 'timetz'],
  ...FURTHER_TYPES,
  ...['citext', 'hstore', 'ltree', 'vector'],
]

/** `"name" type [not null] [default …] [unique] [references …]`. */
export async function columnDefinition(column: NewColumn): Promise<string> {
  const parts = [newName(column.name, 'columns.name'), dataTypeText(column.name, column.data_type)]
  if (column.nullable === false) parts.push('not null')
  if (column.default_expression !== undefined)
    parts.push(`default ${await defaultText(column.default_expression, column.name)}`)
  if (column.unique) parts.push('unique')
  if (column.references) parts.push(referenceText(column.references))
  return parts.join(' ')
}

/** `numeric(12, 2)`, `text[]`: a type of the list, optionally with length or precision, and as an array. */
export function dataTypeText(column: string, given: string): string {
  const { word, precision, array } = typeParts(given)
  const type = Object.hasOwn(OTHER_NAMES, word)
    ? OTHER_NAMES[word]
    : ALLOWED_COLUMN_DATA_TYPES.find((known) => known === word)
  if (type === undefined || precision === undefined)
    throw fail('invalid_data_type', {
      message: `${given.slice(0, 100)} is not an allowed data type`,
      details: {
        column: column.slice(0, 63),
        data_type: given.slice(0, 100),
        allowed: ALLOWED_COLUMN_DATA_TYPES,
      },
    })
  // Time types have their length before "with time zone"; these spellings avoid that.
  return `${type}${precision}${array}`
}

/** Splits the type at its brackets. `precision` is undefined when the text in parentheses is not a precision. */
function typeParts(given: string) {
  const text = given.trim()
  const array = text.endsWith('[]') ? '[]' : ''
  const scalar = text.slice(0, text.length - array.length).trimEnd()
  const open = scalar.endsWith(')') ? scalar.indexOf('(') : -1
  const word = (open < 0 ? scalar : scalar.slice(0, open)).split(/\s/).filter(Boolean).join(' ').toLowerCase()
  return { word, precision: open < 0 ? '' : precisionOf(scalar.slice(open + 1, -1)), array }
}

function precisionOf(text: string): string | undefined {
  const [length = '', scale, ...others] = text.split(',').map((part) => part.trim())
  const isNumber = /^\d{1,8}$/.test(length) && (scale === undefined || /^-?\d{1,4}$/.test(scale))
  if (!isNumber || others.length > 0) return undefined
  return `(${length}${scale === undefined ? '' : `,${scale}`})`
}

const OTHER_NAMES: Readonly<Record<string, string>> = {
  ...TYPE_ALIASES,
  'character varying': 'varchar',
  character: 'char',
  'time with time zone': 'timetz',
  'time without time zone': 'time',
}

function referenceText({
  table,
  column,
  on_delete: onDelete = 'no action',
}: NonNullable<NewColumn['references']>): string {
  const path = table.split('.')
  if (path.length > 2) throw badName('references.table', table)
  // As in requests, the schema defaults to public.
  const [schema = '', name = ''] = path.length === 1 ? ['public', ...path] : path
  requireUnreserved(schema, name)
  const target = `${newName(schema, 'references.table')}.${newName(name, 'references.table')}`
  if (!DELETE_ACTIONS.includes(onDelete))
    throw fail('invalid_definition', {
      message: 'on_delete is not known',
      details: { field: 'references.on_delete', allowed: DELETE_ACTIONS },
    })
  return `references ${target} (${newName(column, 'references.column')}) on delete ${onDelete}`
}

const DELETE_ACTIONS = ['no action', 'restrict', 'cascade', 'set null', 'set default']
