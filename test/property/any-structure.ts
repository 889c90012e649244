import fc from 'fast-check'
import { type Column, catalogueOf, type Table } from '#databases/plan/catalogue.ts'
import type { DeclaredFunction, DeclaredType, TypeUse } from '#databases/plan/declared-types.ts'
import type { Described } from '#gateway/schema/types/described.ts'
import { identifier, text } from './any-name.ts'

/** Names that mean something in the file that is written, or that end a line of it. */
const NAMES = [
  ...['__proto__', 'public', 'DB', 'Json', 'Date', 'Buffer', 'Generated', 'Row', 'Tables', 'never', 'infer', 'readonly'],
  ...['\u2028', 'a\u2029b', '\u0085', '*/', '/*', '// x', '$' + '{name}', '`', '</script>', '"]: any; "', "'", '\\u0022', '\\', '#x', '1n'],
] as const // biome-ignore format: a table

const name = fc.oneof(
  { weight: 2, arbitrary: identifier },
  { weight: 1, arbitrary: fc.constantFrom(...NAMES) },
)
const names = (maxLength: number) => fc.uniqueArray(name, { minLength: 1, maxLength })

const SYSTEM = [
  ...['int4', 'int8', 'numeric', 'bool', 'text', 'json', 'jsonb', 'bytea', 'timestamptz', 'interval', 'point', 'circle', 'oid'],
  ...['_int8', '_numeric', '_text', '_jsonb', '_timestamptz', '_bool', '_xml', 'tsvector', 'void', 'int4range', 'a"b'],
].map((base) => ({ cast: `pg_catalog.${base}`, base })) // biome-ignore format: a table

type Place = { readonly schema: string; readonly name: string }
const castOf = ({ schema, name: type }: Place): string => JSON.stringify([schema, type])
const useOf = (place: Place): TypeUse => ({ cast: castOf(place), base: place.name })

/** Any structure of a database, with names of any characters, as the shapes of types are written from. */
export const structure: fc.Arbitrary<Described> = names(3)
  .map((found) => [...new Set(['public', ...found])])
  .chain((schemas) =>
    fc.record({ types: places(schemas), tables: places(schemas) }).chain(({ types, tables }) => {
      const rows = tables.map((place): [string, DeclaredType] => [castOf(place), { ...place, kind: 'row' }])
      const free = types.filter((place) => !rows.some(([cast]) => cast === castOf(place)))
      const use = fc.constantFrom<TypeUse>(...SYSTEM, ...free.map(useOf), ...tables.map(useOf))
      return fc
        .record({
          declared: fc.tuple(...free.map((place) => declaredType(place, use))),
          tables: fc.tuple(...tables.map((place) => table(place, tables, use))),
          functions: fc.array(called(fc.constantFrom(...schemas), use), { maxLength: 4 }),
          updates: fc.boolean(),
          numbers: fc.constantFrom('number' as const, 'exact' as const),
        })
        .map(({ declared, tables: made, functions, updates, numbers }) => ({
          catalogue: catalogueOf(made),
          declared: {
            types: new Map([...declared.map((type) => [castOf(type), type] as const), ...rows]),
            functions,
            updatableViews: updates
              ? made.map((view) => ({ ...view, columns: [...view.columns.keys()].slice(1) }))
              : [],
          },
          numbers,
        }))
    }),
  )

const places = (schemas: readonly string[]): fc.Arbitrary<readonly Place[]> =>
  fc.uniqueArray(fc.record({ schema: fc.constantFrom(...schemas), name }), { selector: castOf, maxLength: 5 })

const declaredType = (place: Place, use: fc.Arbitrary<TypeUse>): fc.Arbitrary<DeclaredType> =>
  fc.oneof(
    fc.uniqueArray(text(20), { maxLength: 3 }).map((labels) => ({ ...place, kind: 'enum' as const, labels })),
    names(3)
      .chain((fields) => fc.tuple(...fields.map((field) => use.map((type) => ({ name: field, ...type })))))
      .map((fields) => ({ ...place, kind: 'composite' as const, fields })),
    // Of the system's types alone, so that none is of itself.
    fc.constantFrom(...SYSTEM).map((of) => ({ ...place, kind: 'domain' as const, of })),
    fc.constantFrom(...SYSTEM).map((of) => ({ ...place, kind: 'array' as const, of })),
  )

const column = (of: string, use: fc.Arbitrary<TypeUse>): fc.Arbitrary<Column> =>
  fc
    .record({
      ...{
        name: fc.constant(of),
        type: fc.constant('of a test'),
        category: fc.constantFrom('A', 'C', 'S', 'N'),
      },
      nullable: fc.boolean(),
      fallback: fc.constantFrom(undefined, '1'),
      writable: fc.boolean(),
      identity: fc.constant(undefined),
    })
    .chain((facts) => use.map((type) => ({ ...facts, ...type })))

const columns = (use: fc.Arbitrary<TypeUse>, minLength: number): fc.Arbitrary<readonly Column[]> =>
  fc
    .uniqueArray(name, { minLength, maxLength: 4 })
    .chain((found) => fc.tuple(...found.map((one) => column(one, use))))

const table = (place: Place, all: readonly Place[], use: fc.Arbitrary<TypeUse>): fc.Arbitrary<Table> =>
  fc
    .record({
      kind: fc.constantFrom(
        'table' as const,
        'view' as const,
        'materialized view' as const,
        'foreign table' as const,
      ),
      columns: columns(use, 0),
      references: fc.array(fc.record({ constraint: name, to: fc.constantFrom(...all) }), { maxLength: 2 }),
    })
    .map(({ kind, columns: made, references }) => ({
      ...place,
      ...{ kind, estimatedRows: 0, primaryKey: [] },
      columns: new Map(made.map((one) => [one.name, one])),
      constraints: references.map(({ constraint, to }) => ({
        ...{ name: constraint, kind: 'foreign key' as const, definition: undefined },
        columns: made.map((one) => one.name),
        references: { schema: to.schema, table: to.name, columns: made.map((one) => one.name) },
      })),
    }))

const called = (schema: fc.Arbitrary<string>, use: fc.Arbitrary<TypeUse>): fc.Arbitrary<DeclaredFunction> =>
  fc.record({
    ...{ schema, name, returns: use, returnsSet: fc.boolean(), isValue: fc.boolean() },
    columns: fc.option(columns(use, 1), { nil: undefined }),
    arguments: columns(use, 0).chain((made) =>
      fc.boolean().map((optional) => made.map((one) => ({ column: one, optional, variadic: false }))),
    ),
  })
