import type { Numbers } from '../value-types.ts'

/** Types that columns refer to, as name and definition. */
const DEFINITIONS = {
  'Generated<T>': `T extends ColumnType<infer S, infer I, infer U>
  ? ColumnType<S, I | undefined, U>
  : ColumnType<T, T | undefined, T>`,
  'GeneratedAlways<T>': `T extends ColumnType<infer S, unknown, unknown>
  ? ColumnType<S, never, never>
  : ColumnType<T, never, never>`,
  'ListOf<T>': 'T extends ColumnType<infer S, infer I, infer U> ? ColumnType<S[], I[], U[]> : T[]',
  Numeric: 'ColumnType<string, number | string, number | string>',
  Timestamp: 'ColumnType<Date, Date | string, Date | string>',
  IntervalValue: `{
  years?: number
  months?: number
  days?: number
  hours?: number
  minutes?: number
  seconds?: number
  milliseconds?: number
}`,
  Interval: 'ColumnType<IntervalValue, string, string>',
  Point: 'ColumnType<{ x: number; y: number }, string, string>',
  Circle: 'ColumnType<{ x: number; y: number; radius: number }, string, string>',
  JsonObject: '{ [key: string]: JsonValue | undefined }',
  JsonValue: 'string | number | boolean | null | JsonObject | JsonValue[]',
  // No list: `pg` takes an array for one of the database.
  JsonInput: 'string | number | boolean | JsonObject',
  Json: 'ColumnType<JsonValue, JsonInput, JsonInput>',
}

/** Without a parser of its own, `pg` reads int8 as text. */
const int8Definition = (numbers: Numbers): string =>
  `ColumnType<${numbers === 'exact' ? 'bigint' : 'string'}, bigint | number | string, bigint | number | string>`

export const declarationsFor = (numbers: Numbers): string =>
  [
    'import type { ColumnType } from "kysely"\n',
    ...Object.entries({ ...DEFINITIONS, Int8: int8Definition(numbers) }).map(
      ([name, definition]) => `export type ${name} = ${definition}\n`,
    ),
  ].join('\n')

/** Names that those of tables and enums must not hide: of the file, of its import, of the language and of Node. */
export const TAKEN_NAMES: readonly string[] = [
  ...Object.keys(DEFINITIONS).map((name) => name.replace('<T>', '')),
  ...['Int8', 'DB', 'ColumnType', 'Date', 'Buffer'],
]
