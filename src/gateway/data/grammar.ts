import { type TSchema, Type } from 'typebox'
import { OPERATORS } from '#databases/request/request.ts'
import { named, namedAs } from '#kernel/http/document/components.ts'
import { EXACT, OneOf } from '#kernel/http/schemas.ts'

/** Schemas of the query language (gateway.md 4) for the OpenAPI document. The parser is in databases/. */
const Value = Type.Unknown({
  description: 'A JSON value. The database converts texts to the type of the column',
})
const cast = Type.Optional(Type.String({ description: 'A type of the database', examples: ['text'] }))
const Column = Type.String({ minLength: 1, description: 'A column', examples: ['pages'] })

const Comparison = Type.Object(
  {
    operator: Type.Optional(
      OneOf(OPERATORS, {
        ...named('Operator'),
        description:
          'Default: eq. `is` accepts null, true, false or unknown; `in` accepts a list; eq with null means `is null`',
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
    description: 'Short form of equality',
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
      'Terms `column.operator.value`, separated by commas, which can be nested in and(…), or(…) and not(…)',
    examples: [{ operator: 'or', value: 'pages.gt.50,author.is.null' }],
  },
)

/** A group has exactly one member: or, and, or not. */
const group = (word: 'or' | 'and' | 'not', name: string, description: string) =>
  Type.Object({ [word]: innerOrMany }, { ...named(name), description })

const Condition = Type.Union(
  [
    Comparison,
    Equality,
    Terms,
    group('or', 'AnyOf', 'At least one condition holds'),
    group('and', 'AllOf', 'All conditions hold'),
    group('not', 'NotAllOf', 'Not all conditions hold'),
  ],
  { ...named('Condition'), description: 'A comparison, its short form, or a group of conditions' },
)

/** One condition, or a list of conditions joined by AND. */
export const conditionsOf = (max: number, ...examples: unknown[]): TSchema =>
  Type.Union([Condition, Type.Array(Condition, { maxItems: max })], {
    description: `A condition, or a list of at most ${max} conditions joined by AND`,
    examples: examples.length > 0 ? examples : [[{ operator: 'gt', column: 'pages', value: 50 }]],
    [EXACT]: true,
  })

export const columnsOf = (max: number): TSchema =>
  Type.Union([Type.String(), Type.Array(Type.String({ minLength: 1 }), { maxItems: max })], {
    description:
      'Columns to return, as a list or separated by commas: `column`, `alias:column`, `column::type`, `*`, `relation(columns)`. Default: all',
    examples: [['id', 'title']],
  })

const direction = Type.Optional(
  OneOf(['asc', 'desc'], {
    ...named('SortDirection'),
    description: 'Default: asc. Also accepted: ascending, descending',
  }),
)
const nulls = Type.Optional(
  OneOf(['first', 'last'], { ...named('NullsPlace'), description: 'Position of nulls' }),
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

export const SortBy = oneOrMany(SortItem, 'Sort order of the rows')
export const OrderBy = oneOrMany(OrderItem, 'Sort order of the rows, structured')

export const Row = Type.Record(Type.String(), Type.Unknown(), {
  ...named('Row'),
  description: 'Values by column',
})

export const CountMode = OneOf(['exact', 'planned', 'estimated'], {
  ...named('CountMode'),
  description: 'How to count the rows without limit and offset',
})
