import { type TSchema, Type } from 'typebox'
import type { Config } from '#kernel/config/config.ts'
import { described, named } from '#kernel/http/components.ts'
import { OneOf, Parsed } from '#kernel/http/schemas.ts'
import { CountMode, columnsOf, conditionsOf, OrderBy, Row, SortBy } from './grammar.ts'

/**
 * What the data operations take, in full. The plan (databases/request/read-request.ts) parses it, with failures that name the field, and takes
 * more: a member under one of its aliases, null for an absent one, a number as text.
 */
export function dataBodies({ limits, gateway }: Config) {
  const { columns, conditions } = limits
  const rows = count('At most this many rows', { maximum: gateway.max_rows })
  const fetch = bodyOf('FetchBody', {
    ...target,
    ...outputOf(columns),
    ...filterOf(conditions),
    select: Type.Optional(
      Type.Unknown({
        description: 'Structured selection: column to true, alias to column, relation to {select: {…}}',
        examples: [{ id: true, name: 'title' }],
      }),
    ),
    ...pageOf(rows),
    current_page: count('Page, from 1; with page_size'),
    page_size: count('Rows of a page', { maximum: gateway.max_rows }),
    total_pages: count('Echoed'),
    ...grouping,
  })
  const insert = bodyOf('InsertBody', {
    ...target,
    insert_body: Type.Union([Row, Type.Array(Row, { minItems: 1 })], {
      description: 'A row, or a list of rows; their keys may differ',
    }),
    on_conflict: Type.Optional(
      Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1 })], {
        description: 'The column or columns whose conflict is met with update_body, or with nothing',
        examples: ['id'],
      }),
    ),
    update_body: Type.Optional(rowOf('What to set on conflict')),
    default_to_null: flag('Absent keys become null, not the default of the column'),
    ...outputOf(columns),
    head,
  })
  const update = bodyOf('UpdateBody', {
    ...target,
    update_body: rowOf('What to set'),
    set: aliasOf('update_body', Row),
    data: aliasOf('update_body', Row),
    ...requiredFilterOf(conditions),
    ...pageOf(count('Change at most this many rows')),
    ...outputOf(columns),
  })
  const remove = bodyOf('DeleteBody', {
    ...target,
    resource_id: Type.Optional(
      Type.Union([Type.String(), Type.Number()], {
        description: 'The row to delete, by column resource_id or by the primary key',
      }),
    ),
    ...requiredFilterOf(conditions),
    ...pageOf(count('Delete at most this many rows')),
    ...outputOf(columns),
  })
  const counted = bodyOf('CountBody', { ...target, ...filterOf(conditions), count: countMode })
  return {
    FetchBody: shown(fetch, examples.fetch),
    CountBody: shown(counted, examples.count),
    InsertBody: shown(insert, examples.insert),
    UpdateBody: shown(update, examples.update),
    DeleteBody: shown(remove, examples.delete),
    TransactionBody: transactionOf(limits.operations, [insert, update, remove, fetch]),
    DataQuery: queryOf(gateway.max_rows),
  }
}

/** Each example does on the quick start's table what the README does there. */
const ada = { title: 'Notes on the Analytical Engine', author: 'Ada Lovelace', pages: 66 }
const isByAda = [{ eq_column: 'author', eq_value: 'Ada Lovelace' }]
const examples = {
  insert: [
    {
      table_name: 'books',
      insert_body: [
        ada,
        { title: 'The Art of Computer Programming', author: 'Donald Knuth', pages: 3_168 },
        { title: 'Untitled' },
      ],
    },
  ],
  fetch: [
    {
      table_name: 'books',
      columns: ['title', 'pages'],
      conditions: [{ operator: 'gt', column: 'pages', value: 50 }],
      sort_by: { field: 'pages', direction: 'desc' },
      current_page: 1,
      page_size: 10,
      count: 'exact',
    },
    { table_name: 'books', conditions: isByAda },
    {
      table_name: 'books',
      conditions: [
        {
          or: [
            { column: 'pages', operator: 'lt', value: 100 },
            { column: 'pages', value: null },
          ],
        },
      ],
    },
    { table_name: 'books', conditions: [{ operator: 'not', value: 'pages.gt.50,author.is.null' }] },
    {
      table_name: 'books',
      group_by: 'author',
      aggregation_column: 'pages',
      aggregation_strategy: 'cumulative_sum',
    },
  ],
  count: [{ table_name: 'books', conditions: isByAda }],
  update: [{ table_name: 'books', update_body: { pages: 67 }, conditions: isByAda }],
  delete: [{ table_name: 'books', conditions: [{ eq_column: 'title', eq_value: 'Untitled' }] }],
  transaction: [
    {
      operations: [
        { id: 'add', kind: 'insert', payload: { table_name: 'books', insert_body: { title: 'Sketches' } } },
        { id: 'look', kind: 'fetch', payload: { table_name: 'books', limit: 10 } },
      ],
    },
  ],
} as const

const bodyOf = (name: string, members: Record<string, TSchema>): TSchema => Type.Object(members, named(name))

/** The body of a request, as its verb parses it. */
const shown = (schema: TSchema, examples: readonly unknown[]) => Parsed(schema, { examples })

const text = (description: string, ...examples: string[]) =>
  Type.Optional(Type.String({ description, ...(examples.length > 0 && { examples }) }))
const count = (description: string, more: object = {}) =>
  Type.Optional(Type.Integer({ minimum: 0, description, ...more }))
const flag = (description: string) => Type.Optional(Type.Boolean({ description }))
const oneOf = <const T extends readonly string[]>(description: string, ...words: T) =>
  Type.Optional(OneOf(words, { description }))
const rowOf = (description: string): TSchema => Type.Unsafe(described(Row, description))

/** Another name of a member, which other clients use. */
const aliasOf = (member: string, schema: TSchema) =>
  Type.Optional(Type.Unsafe(described(schema, `Alias of ${member}`, { 'x-alias-of': member })))

const target = {
  table_name: Type.String({
    minLength: 1,
    description: 'The table or view, also as schema.table',
    examples: ['books'],
  }),
  table: aliasOf('table_name', Type.String()),
  view_name: aliasOf('table_name', Type.String()),
  schema_name: text('The schema; default public', 'public'),
}

const outputOf = (most: number) => ({
  columns: Type.Optional(columnsOf(most)),
  strip_nulls: flag('Leave out members that are null'),
})

const filterOf = (most: number) => ({
  conditions: Type.Optional(conditionsOf(most)),
  where: Type.Optional(rowOf('Structured conditions: column to value, to a list, or to {operator: value}')),
  where_filters: Type.Optional(conditionsOf(most)),
})

const requiredFilterOf = (most: number) => ({
  ...filterOf(most),
  allow_unbounded: flag('Every row is meant when there is no condition'),
})

const countMode = Type.Optional(CountMode)
const head = flag('Answer without rows')

const pageOf = (limit: TSchema) => ({
  limit,
  offset: count('Skip this many rows'),
  sort_by: Type.Optional(SortBy),
  sortBy: aliasOf('sort_by', SortBy),
  order_by: aliasOf('sort_by', SortBy),
  orderBy: Type.Optional(OrderBy),
  count: countMode,
  head,
})

/** Gateway.md 5. */
const grouping = {
  group_by: text('Group the rows by this column; the groups stand in post_processing', 'author'),
  time_granularity: Type.Optional(
    OneOf(['day', 'hour', 'minute'], {
      ...named('TimeGranularity'),
      description: 'The column of group_by is a time: group by its day, hour or minute, in UTC',
    }),
  ),
  aggregation_column: text('Add up this column in every group, exactly', 'pages'),
  aggregation_strategy: oneOf('Also run the sum over the groups; needs aggregation_column', 'cumulative_sum'),
  aggregation_dedup: flag('Rows that are the same in every returned column count once within a group'),
}

const stripNulls = {
  'x-strip-nulls': text('true: leave out members that are null; a member strip_nulls says it first', 'true'),
}
export const ReadHeaders = Type.Object(stripNulls)

export const InsertHeaders = Type.Object({
  'x-service-insert-window': text(
    'Milliseconds to wait for other inserts of the same form, from 1 to limits.insert_window',
    '20',
  ),
})

export const TransactionHeaders = Type.Object({
  ...stripNulls,
  'idempotency-key': text('For 24 hours the same key gives the same answer, and nothing is done again'),
})

const transactionOf = (most: number, bodies: TSchema[]) =>
  Type.Object(
    {
      operations: Type.Array(
        Type.Object(
          {
            id: Type.String({
              minLength: 1,
              maxLength: 128,
              description: 'Names the result',
              examples: ['first'],
            }),
            kind: OneOf(['insert', 'update', 'delete', 'fetch'], named('OperationKind')),
            payload: Parsed(Type.Unsafe({ type: 'object', anyOf: bodies }), {
              description: 'The body of that operation',
            }),
          },
          named('Operation'),
        ),
        { minItems: 1, description: `In this order, all or nothing; at most ${most} of them` },
      ),
      options: Type.Optional(
        Type.Object({
          isolation_level: text('read_committed, repeatable_read or serializable', 'serializable'),
          read_only: flag('Refuse to write'),
        }),
      ),
      idempotency_key: text('In place of the header Idempotency-Key'),
    },
    { examples: examples.transaction },
  )

const queryOf = (most: number) =>
  Type.Object({
    view: Type.String({ minLength: 1, description: 'The table or view', examples: ['books'] }),
    eq_column: Type.String({ minLength: 1, examples: ['author'] }),
    eq_value: Type.String({ examples: ['Ada Lovelace'] }),
    columns: text('Comma list of columns', 'id,title'),
    limit: count(`At most this many rows, and ${most}`),
    offset: count('Skip this many rows'),
    current_page: count('Page, from 1; with page_size'),
    page_size: count('Rows of a page'),
    total_pages: count('Echoed'),
    strip_nulls: flag('Leave out members that are null'),
    sort_by: text('Column to sort by', 'title'),
    sort_direction: oneOf('The direction of sort_by; default asc', 'asc', 'desc', 'ascending', 'descending'),
    ...grouping,
    api_key: text('The API key, where no header can be sent'),
  })
