import { type TSchema, Type } from 'typebox'
import { OPERATORS } from '#databases/request/request.ts'
import { named, namedAs } from '#kernel/http/components.ts'
import { OneOf } from '#kernel/http/schemas.ts'

/** The query language of gateway.md 4 as schemas, for the document; databases/ parses it. */
const Value = Type.Unknown({
  description: 'A JSON value; the database converts texts to the type of the column',
})
const cast = Type.Optional(Type.String({ description: 'A type of the database', examples: ['text'] }))
const Column = Type.String({ minLength: 1, description: 'A column', examples: ['pages'] })

const Comparison = Type.Object(
  {
    operator: Type.Optional(
      OneOf(OPERATORS, {
        ...named('Operator'),
        description:
          'Default: eq. is takes null, true, false or unknown; in takes a list; eq with null is `is null`',
      }),
    ),
    column: Column,
    value: Value,
    column_cast: cast,
    value_cast: cast,
  },
  {
    ...named('Comparison'),
    description: 'One column, one operator, one value',
    examples: [{ operator: 'gt', column: 'pages', value: 50 }],
  },
)

const Equality = Type.Object(
  { eq_column: Column, eq_value: Value, eq_column_cast: cast, eq_value_cast: cast },
  {
    ...named('Equality'),
    description: 'The short form: a column has a value',
    examples: [{ eq_column: 'author', eq_value: 'Ada Lovelace' }],
  },
)

const inner = Type.Unsafe(namedAs('Condition'))
const innerOrMany = Type.Union([inner, Type.Array(inner, { minItems: 1 })])

const Terms = Type.Object(
  {
    operator: OneOf(['or', 'and', 'not']),
    value: Type.Union([
      Type.String({ examples: ['pages.gt.50,author.is.null', 'and(pages.gt.50,pages.lt.100)'] }),
      Type.Array(Type.Union([Type.String(), inner]), { minItems: 1 }),
    ]),
    column: Type.Optional(
      Type.String({ description: 'With not: the column of a value like `gt.50`', examples: ['pages'] }),
    ),
  },
  {
    ...named('Terms'),
    description:
      'Terms `column.operator.value` with commas between them, and(…), or(…) and not(…) around them',
    examples: [{ operator: 'or', value: 'pages.gt.50,author.is.null' }],
  },
)

/** A group has one member, which says what it is. */
const group = (word: 'or' | 'and' | 'not', name: string, description: string) =>
  Type.Object({ [word]: innerOrMany }, { ...named(name), description })

const Condition = Type.Union(
  [
    Comparison,
    Equality,
    Terms,
    group('or', 'AnyOf', 'One of them holds'),
    group('and', 'AllOf', 'All of them hold'),
    group('not', 'NotAllOf', 'They do not hold together'),
  ],
  { ...named('Condition'), description: 'A comparison, its short form, or a group of conditions' },
)

/** One condition, or a list whose members all have to hold. */
export const conditionsOf = (most: number, ...examples: unknown[]): TSchema =>
  Type.Union([Condition, Type.Array(Condition, { maxItems: most })], {
    description: `A condition, or a list of at most ${most} that all have to hold`,
    examples: examples.length > 0 ? examples : [[{ operator: 'gt', column: 'pages', value: 50 }]],
  })

export const columnsOf = (most: number): TSchema =>
  Type.Union([Type.String(), Type.Array(Type.String({ minLength: 1 }), { maxItems: most })], {
    description:
      'Columns to return, as a list or with commas: `column`, `alias:column`, `column::type`, `*`, `relation(columns)`; absent: all',
    examples: [['id', 'title']],
  })

const direction = Type.Optional(
  OneOf(['asc', 'desc', 'ascending', 'descending'], {
    ...named('SortDirection'),
    description: 'Default: asc',
  }),
)
const nulls = Type.Optional(
  OneOf(['first', 'last'], { ...named('NullsPlace'), description: 'Where null comes' }),
)

const SortItem = Type.Object(
  { field: Column, direction, nulls },
  { ...named('SortBy'), examples: [{ field: 'pages', direction: 'desc' }] },
)
const OrderItem = Type.Object(
  { column: Column, direction, nulls },
  { ...named('OrderBy'), examples: [{ column: 'pages', direction: 'desc' }] },
)
const oneOrMany = (item: TSchema, description: string): TSchema =>
  Type.Union([item, Type.Array(item)], { description })

export const SortBy = oneOrMany(SortItem, 'How the rows are sorted')
export const OrderBy = oneOrMany(OrderItem, 'How the rows are sorted, in the structured spelling')

export const Row = Type.Record(Type.String(), Type.Unknown(), {
  ...named('Row'),
  description: 'Column to value',
})

export const CountMode = OneOf(['exact', 'planned', 'estimated'], {
  ...named('CountMode'),
  description: 'How many rows there are without limit and offset',
})
