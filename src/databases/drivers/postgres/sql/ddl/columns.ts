import type { NewColumn } from '#databases/drivers/management.ts'
import { badName, newName, requireUnreserved } from '#databases/drivers/postgres/sql/ddl/names.ts'
import { defaultText } from '#databases/drivers/postgres/sql/defaults.ts'
import { fail } from '#databases/failures.ts'
import { FURTHER_TYPES, NUMBER_TYPES, TYPE_ALIASES } from '#databases/plan/data-types.ts'

export const ALLOWED_COLUMN_DATA_TYPES = [
  ...NUMBER_TYPES,
  'smallserial', 'serial', 'bigserial', 'text', 'varchar', 'char', 'boolean', 'date', 'time', 'timetz',
  ...FURTHER_TYPES,
  'citext', 'hstore', 'ltree', 'vector',
] // biome-ignore format: a list

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
  const { word, modifiers, array } = typeParts(given)
  const type = Object.hasOwn(OTHER_NAMES, word)
    ? OTHER_NAMES[word]
    : ALLOWED_COLUMN_DATA_TYPES.find((known) => known === word)
  const refuse = (hint?: string) =>
    fail('invalid_data_type', {
      message: `${given.slice(0, 100)} is not an allowed data type`,
      ...(hint !== undefined && { hint }),
      details: {
        column: column.slice(0, 63),
        data_type: given.slice(0, 100),
        allowed: ALLOWED_COLUMN_DATA_TYPES,
      },
    })
  if (type === undefined || modifiers === undefined) throw refuse()
  const hint = wrongModifier(type, modifiers)
  if (hint !== undefined) throw refuse(hint)
  // Time types have their length before "with time zone"; these spellings avoid that.
  return `${type}${modifiers.length === 0 ? '' : `(${modifiers.join(',')})`}${array}`
}

type Range = readonly [min: number, max: number]

const LENGTH: readonly Range[] = [[1, 10_485_760]]
/** The server lowers more than 6 digits to 6. */
const DIGITS: readonly Range[] = [[0, 99_999_999]]
/** Ranges of length or precision, and of scale. Other types take no modifiers. */
const MODIFIERS: ReadonlyMap<string, readonly Range[]> = new Map([
  ['numeric', [[1, 1_000], [-1_000, 1_000]]],
  ['varchar', LENGTH],
  ['char', LENGTH],
  ['vector', [[1, 16_000]]],
  ['time', DIGITS],
  ['timetz', DIGITS],
  ['timestamp', DIGITS],
  ['timestamptz', DIGITS],
  ['interval', DIGITS],
]) // biome-ignore format: a table

/** The problem with the length, precision or scale of a type; undefined for none. */
function wrongModifier(type: string, modifiers: readonly number[]): string | undefined {
  const ranges = MODIFIERS.get(type) ?? []
  if (modifiers.length > ranges.length)
    return ranges.length === 0
      ? `Write ${type} without parentheses.`
      : `${type} takes ${ranges.length} number.`
  const wrong = ranges.find(([min, max], index) => {
    const modifier = modifiers[index] ?? max
    return modifier < min || modifier > max
  })
  return wrong && `${type} takes a number from ${wrong[0]} to ${wrong[1]}.`
}

/** Splits the type at its brackets. `modifiers` is undefined when the text in parentheses is not one or two numbers. */
function typeParts(given: string) {
  const text = given.trim()
  const array = text.endsWith('[]') ? '[]' : ''
  const scalar = text.slice(0, text.length - array.length).trimEnd()
  const open = scalar.endsWith(')') ? scalar.indexOf('(') : -1
  const word = (open < 0 ? scalar : scalar.slice(0, open)).split(/\s/).filter(Boolean).join(' ').toLowerCase()
  return { word, modifiers: open < 0 ? [] : modifiersOf(scalar.slice(open + 1, -1)), array }
}

function modifiersOf(text: string): readonly number[] | undefined {
  const numbers = text.split(',').map((part) => part.trim())
  return numbers.length <= 2 && numbers.every((number) => /^-?\d{1,8}$/.test(number))
    ? numbers.map(Number)
    : undefined
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
