import { type TSchema, Type } from 'typebox'
import type { Config } from '#kernel/config/config.ts'
import { described, named } from '#kernel/http/document/components.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import { OneOf, Parsed, spelled } from '#kernel/http/schemas.ts'
import { EXAMPLES } from './examples.ts'
import { CountMode, columnsOf, conditionsOf, OrderBy, Row, SortBy } from './grammar.ts'

/**
 * Schemas of the data operations. The parser (databases/request/read-request.ts) reports errors by field and accepts more: aliases of
 * members, null for absent members, numbers as text.
 */
export function dataBodies({ limits, gateway }: Config) {
  const { columns, conditions } = limits
  const rows = count('Maximum number of rows', { maximum: gateway.max_rows })
  const fetch = bodyOf('FetchBody', {
    ...TARGET_FIELDS,
    ...outputOf(columns),
    ...filterOf(conditions),
    select: Type.Optional(
      Type.Unknown({
        description: 'Structured selection: {column: true, alias: "column", relation: {select: {…}}}',
        examples: [{ id: true, name: 'title' }],
      }),
    ),
    ...pageOf(rows),
    current_page: count('Number of the page from 1, with page_size'),
    page_size: count('Rows per page', { maximum: gateway.max_rows }),
    total_pages: count('Returned as it is'),
    ...GROUPING_FIELDS,
  })
  const insert = bodyOf('InsertBody', {
    ...TARGET_FIELDS,
    insert_body: Type.Union([Row, Type.Array(Row, { minItems: 1 })], {
      description: 'A row, or a list of rows, which may have different members',
    }),
    on_conflict: Type.Optional(
      Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1 })], {
        description:
          'The column or columns of a unique constraint. On conflict, update_body is applied, or the row is skipped',
        examples: ['id'],
      }),
    ),
    update_body: Type.Optional(rowOf('Values to set on conflict')),
    default_to_null: flag("Missing members become null instead of the column's default"),
    ...outputOf(columns),
    head: HEAD_FLAG,
  })
  const update = bodyOf('UpdateBody', {
    ...TARGET_FIELDS,
    update_body: rowOf('Values to set'),
    set: aliasOf('update_body', Row),
    data: aliasOf('update_body', Row),
    ...requiredFilterOf(conditions),
    ...pageOf(count('Maximum number of rows to change')),
    single: SINGLE_FLAG,
    ...outputOf(columns),
  })
  const remove = bodyOf('DeleteBody', {
    ...TARGET_FIELDS,
    resource_id: Type.Optional(
      Type.Union([Type.String(), Type.Number()], {
        description: 'The row to delete, by the column resource_id or the primary key',
      }),
    ),
    ...requiredFilterOf(conditions),
    ...pageOf(count('Delete at most this many rows')),
    single: SINGLE_FLAG,
    ...outputOf(columns),
  })
  const counted = bodyOf('CountBody', { ...TARGET_FIELDS, ...filterOf(conditions), count: countMode })
  return {
    FetchBody: shown(fetch, EXAMPLES.fetch),
    CountBody: shown(counted, EXAMPLES.count),
    InsertBody: shown(insert, EXAMPLES.insert),
    UpdateBody: shown(update, EXAMPLES.update),
    DeleteBody: shown(remove, EXAMPLES.delete),
    TransactionBody: transactionOf(limits.operations, [insert, update, remove, fetch]),
    plain: [fetch, insert, update, remove],
    DataQuery: queryOf(gateway.max_rows),
  }
}

const bodyOf = (name: string, members: Record<string, TSchema>): TSchema => Type.Object(members, named(name))

/** The body of a request; the operation parses it. */
const shown = (schema: TSchema, examples: readonly unknown[]) => Parsed(schema, { examples })

const text = (description: string, ...examples: string[]) =>
  Type.Optional(Type.String({ description, ...(examples.length > 0 && { examples }) }))
const count = (description: string, more: object = {}) =>
  Type.Optional(Type.Integer({ minimum: 0, description, ...more }))
const flag = (description: string) => Type.Optional(Type.Boolean({ description }))
const oneOf = <const T extends readonly string[]>(description: string, ...words: T) =>
  Type.Optional(OneOf(words, { description }))
const rowOf = (description: string): TSchema => Type.Unsafe(described(Row, description))

/** An alias of a member, which other clients use. */
const aliasOf = (member: string, schema: TSchema) =>
  Type.Optional(Type.Unsafe(described(schema, `Alias of ${member}`, { 'x-alias-of': member })))

const TARGET_FIELDS = {
  table_name: Type.String({
    minLength: 1,
    description: 'The table or view, optionally as schema.table',
    examples: ['books'],
  }),
  table: aliasOf('table_name', Type.String()),
  view_name: aliasOf('table_name', Type.String()),
  schema_name: text('The schema. Default: public', 'public'),
}

const outputOf = (max: number) => ({
  columns: Type.Optional(columnsOf(max)),
  strip_nulls: flag('Omit members that are null'),
})

const filterOf = (max: number) => ({
  conditions: Type.Optional(conditionsOf(max)),
  where: Type.Optional(
    rowOf('Structured conditions: {column: value}, {column: list} or {column: {operator: value}}'),
  ),
  where_filters: Type.Optional(conditionsOf(max)),
})

const requiredFilterOf = (max: number) => ({
  ...filterOf(max),
  allow_unbounded: flag('Allow a write to all rows if there is no condition'),
})

const countMode = Type.Optional(CountMode)
const HEAD_FLAG = flag('Return no rows')
const SINGLE_FLAG = flag('Write one row at most: if more match, nothing is written (not_one_row)')

const pageOf = (limit: TSchema) => ({
  limit,
  offset: count('Number of rows to skip'),
  sort_by: Type.Optional(SortBy),
  sortBy: aliasOf('sort_by', SortBy),
  order_by: aliasOf('sort_by', SortBy),
  orderBy: Type.Optional(OrderBy),
  count: countMode,
  head: HEAD_FLAG,
})

/** Gateway.md 5. */
const GROUPING_FIELDS = {
  group_by: text('Group the rows by this column. The groups are in post_processing', 'author'),
  time_granularity: Type.Optional(
    OneOf(['day', 'hour', 'minute'], {
      ...named('TimeGranularity'),
      description: 'Group a time column by its day, hour or minute in UTC',
    }),
  ),
  aggregation_column: text('Compute the exact sum of this column in every group', 'pages'),
  aggregation_strategy: oneOf(
    'Also compute cumulative sums over the groups. Requires aggregation_column',
    'cumulative_sum',
  ),
  aggregation_dedup: flag('Count rows with the same returned columns once within a group'),
}

const STRIP_NULLS = {
  [HEADER.stripNulls]: text(
    'true: omit members that are null. The member strip_nulls takes precedence',
    'true',
  ),
}
const FORMAT = {
  format: oneOf(
    'csv: the rows as a file to download. Without it the header Accept decides: text/csv',
    'json',
    'csv',
  ),
}
/** The query of reads whose body has the request. */
export const InFormat = Type.Object(FORMAT)

export const ReadHeaders = Type.Object(STRIP_NULLS)

export const InsertHeaders = Type.Object({
  [HEADER.insertWindow]: text(
    'Milliseconds to wait for similar inserts, to run them together, from 1 to limits.insert_window',
    '20',
  ),
})

export const TransactionHeaders = Type.Object({
  ...STRIP_NULLS,
  [HEADER.idempotencyKey]: text(
    'For 24 hours, requests with the same key get the stored response and are not run again',
  ),
})

const transactionOf = (max: number, bodies: TSchema[]) =>
  Type.Object(
    {
      operations: Type.Array(
        Type.Object(
          {
            id: Type.String({
              minLength: 1,
              maxLength: 128,
              description: 'Id of the operation in the results',
              examples: ['first'],
            }),
            kind: OneOf(['insert', 'update', 'delete', 'fetch'], named('OperationKind')),
            payload: Parsed(Type.Unsafe({ type: 'object', anyOf: bodies }), {
              description: 'Body of the operation',
            }),
          },
          named('Operation'),
        ),
        { minItems: 1, description: `Operations in order, at most ${max}. They are atomic` },
      ),
      options: Type.Optional(
        Type.Object(
          {
            isolation_level: text('read_committed, repeatable_read or serializable', 'serializable'),
            read_only: flag('Reject writes'),
          },
          named('TransactionOptions'),
        ),
      ),
      idempotency_key: text('Instead of the header Idempotency-Key'),
    },
    { examples: EXAMPLES.transaction },
  )

const queryOf = (max: number) =>
  Type.Object({
    view: Type.String({ minLength: 1, description: 'The table or view', examples: ['books'] }),
    eq_column: Type.String({ minLength: 1, examples: ['author'] }),
    eq_value: Type.String({ examples: ['Ada Lovelace'] }),
    columns: text('Columns, separated by commas', 'id,title'),
    limit: count(`Maximum number of rows, up to ${max}`),
    offset: count('Number of rows to skip'),
    current_page: count('Number of the page from 1, with page_size'),
    page_size: count('Rows per page'),
    total_pages: count('Returned as it is'),
    strip_nulls: flag('Omit members that are null'),
    sort_by: text('Column to sort by', 'title'),
    sortBy: aliasOf('sort_by', Type.String()),
    order_by: aliasOf('sort_by', Type.String()),
    sort_direction: Type.Optional(
      OneOf(['asc', 'desc'], {
        description: 'Direction of sort_by. Default: asc. Also accepted: ascending, descending',
        ...spelled({ ascending: 'asc', descending: 'desc' }),
      }),
    ),
    ...GROUPING_FIELDS,
    ...FORMAT,
    api_key: text('The API key, if headers cannot be sent'),
  })
