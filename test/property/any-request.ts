import fc from 'fast-check'
import { condition, type Source } from './any-condition.ts'
import { identifier } from './any-name.ts'
import { ofKind } from './any-value.ts'
import { type Column, type Condition, columnAt, type Row, type Sort, type Table } from './model.ts'
import { type Kind, type KindName, kinds, type Value } from './values.ts'

const kindName = fc.constantFrom(...(Object.keys(kinds) as KindName[]))

export const table: fc.Arbitrary<Table> = fc
  .record({
    schema: fc.constantFrom('public', 'we"ird.schema', 'Ünïcode 😀'),
    name: identifier,
    columns: fc.uniqueArray(fc.record({ name: identifier, kind: kindName, nullable: fc.boolean() }), {
      selector: ({ name }) => name,
      minLength: 2,
      maxLength: 8,
    }),
  })
  .map(({ schema, name, columns: [key, ...columns] }) => ({ schema, name, key: key?.name ?? 'id', columns }))

export const rowsOf = (of: Table): fc.Arbitrary<Row[]> =>
  fc
    .array(fc.tuple(...of.columns.map((column) => valueIn(column))), { maxLength: 12 })
    .map((rows) => rows.map((values, at) => ({ key: at + 1, values })))

const valueIn = ({ kind, nullable }: Column): fc.Arbitrary<Value | null> =>
  nullable ? fc.option(ofKind[kind], { freq: 3 }) : ofKind[kind]

/** The rows as the database stores them. */
export const stored = ({ columns }: Table, row: Row): Row => ({
  ...row,
  values: row.values.map((value, at) => storedAs(columns[at], value)),
})

const storedAs = (column: Column | undefined, value: Value | null): Value | null =>
  value === null || column === undefined ? value : (kinds[column.kind] as Kind).store(value)

export type Reading = {
  readonly condition: Condition | undefined
  readonly sort: readonly Sort[]
  /** Column indexes, with an optional alias or cast. */
  readonly output:
    | readonly { readonly column: number; readonly alias?: string; readonly asText: boolean }[]
    | undefined
  readonly page: {
    readonly limit?: number
    readonly offset?: number
    readonly size?: number
    readonly current?: number
  }
  readonly count: boolean
  readonly stripNulls: boolean
  readonly wording: number
}

export const reading = (source: Source): fc.Arbitrary<Reading> =>
  fc.record({
    condition: fc.option(condition(source), { nil: undefined, freq: 10 }),
    sort: sortOf(source),
    output: fc.option(outputOf(source), { nil: undefined }),
    page: fc.record(
      { limit: fc.nat(14), offset: fc.nat(8), size: fc.nat(6), current: fc.nat(4) },
      { requiredKeys: [] },
    ),
    count: fc.boolean(),
    stripNulls: fc.boolean(),
    wording: fc.nat(),
  })

function sortOf({ table: of }: Source): fc.Arbitrary<Sort[]> {
  const sortable = of.columns.flatMap(({ kind }, at) => (kinds[kind].compare ? [at] : []))
  if (sortable.length === 0) return fc.constant([])
  return fc.array(
    fc.record(
      {
        column: fc.constantFrom(...sortable),
        descending: fc.boolean(),
        nulls: fc.constantFrom('first' as const, 'last' as const),
      },
      { requiredKeys: ['column', 'descending'] },
    ),
    { maxLength: 3 },
  )
}

/** No duplicate names. */
const outputOf = ({ table: of }: Source) =>
  fc.uniqueArray(
    fc.record(
      {
        column: fc.integer({ min: -1, max: of.columns.length - 1 }),
        alias: identifier,
        asText: fc.boolean(),
      },
      { requiredKeys: ['column', 'asText'] },
    ),
    { selector: ({ column, alias }) => alias ?? columnAt(of, column).name, minLength: 1, maxLength: 6 },
  )

export type Change = {
  readonly condition: Condition
  readonly sort: readonly Sort[]
  readonly limit: number | undefined
  readonly offset: number
  readonly wording: number
}

export const change = (source: Source): fc.Arbitrary<Change> =>
  fc.record({
    condition: condition(source),
    sort: sortOf(source),
    limit: fc.option(fc.nat(5), { nil: undefined }),
    offset: fc.oneof(fc.constant(0), fc.nat(3)),
    wording: fc.nat(),
  })

/** New values for at least one column. */
export const assignments = ({ table: of }: Source): fc.Arbitrary<[at: number, value: Value | null][]> =>
  fc
    .uniqueArray(fc.nat(of.columns.length - 1), { minLength: 1, maxLength: 3 })
    .chain((places) =>
      fc.tuple(
        ...places.map((at) => valueIn(columnAt(of, at)).map((value): [number, Value | null] => [at, value])),
      ),
    )
