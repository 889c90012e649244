import { Type } from 'typebox'

/**
 * What the data operations take. The schemas describe; the plan (databases/requests.ts) parses, with failures that name
 * the field. Members without a type here may have several.
 */
const member = (description: string, ...examples: unknown[]) =>
  Type.Optional(Type.Unknown({ description, ...(examples.length > 0 && { examples }) }))
const text = (description: string, ...examples: string[]) =>
  Type.Optional(Type.String({ description, ...(examples.length > 0 && { examples }) }))
const count = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description }))
const flag = (description: string) => Type.Optional(Type.Boolean({ description }))

const target = {
  table_name: text('The table or view, also as schema.table', 'cities'),
  table: text('Another name of table_name'),
  view_name: text('Another name of table_name'),
  schema_name: text('The schema; default public'),
}

const filter = {
  conditions: member(
    'Conditions, all of which must hold: {operator, column, value} or {eq_column, eq_value}',
    [{ operator: 'gt', column: 'population', value: 1_000_000 }],
  ),
  where: member('Structured conditions', { country: { eq: 'FR' } }),
  where_filters: member('Structured conditions, as a list'),
}

const page = {
  limit: count('At most this many rows'),
  offset: count('Skip this many rows'),
  sort_by: member('{field, direction}, or a list of them', { field: 'name', direction: 'asc' }),
  sortBy: member('Another name of sort_by'),
  order_by: member('Another name of sort_by'),
  orderBy: member('{column, direction}, or a list of them'),
  count: Type.Optional(Type.Unsafe<string>({ type: 'string', enum: ['exact', 'planned', 'estimated'] })),
  head: flag('Answer without rows'),
}

const output = {
  columns: member('Columns to return: a list or one comma list; `alias:column`, `*`, `relation(columns)`', [
    'id',
    'name',
  ]),
  strip_nulls: flag('Leave out members that are null'),
}

const oneOf = (description: string, ...words: string[]) =>
  Type.Optional(Type.Unsafe<string>({ type: 'string', enum: words, description }))

/** Gateway.md 5. */
const grouping = {
  group_by: text('Group the rows by this column; the groups stand in post_processing', 'country'),
  time_granularity: oneOf(
    'The column of group_by is a time: group by its day, hour or minute, in UTC',
    'day',
    'hour',
    'minute',
  ),
  aggregation_column: text('Add up this column in every group, exactly', 'population'),
  aggregation_strategy: oneOf('Also run the sum over the groups; needs aggregation_column', 'cumulative_sum'),
  aggregation_dedup: flag('Rows that are the same in every returned column count once within a group'),
}

export const FetchBody = Type.Object(
  {
    ...target,
    ...output,
    ...filter,
    ...page,
    ...grouping,
    select: member('Structured selection'),
    current_page: count('Page, from 1; with page_size'),
    page_size: count('Rows of a page'),
    total_pages: count('Echoed'),
  },
  {
    examples: [
      {
        table_name: 'cities',
        conditions: [{ operator: 'gt', column: 'population', value: 1_000_000 }],
        sort_by: { field: 'name', direction: 'asc' },
        limit: 10,
      },
    ],
  },
)

export const CountBody = Type.Object(
  { ...target, ...filter, count: page.count },
  { examples: [{ table_name: 'cities', conditions: [{ eq_column: 'country', eq_value: 'FR' }] }] },
)

export const InsertBody = Type.Object(
  {
    ...target,
    ...output,
    insert_body: member('A row, or a list of rows; their keys may differ', [
      { name: 'Paris', country: 'FR' },
    ]),
    on_conflict: member(
      'The column or columns whose conflict is met with update_body, or with nothing',
      'id',
    ),
    update_body: member('What to set on conflict'),
    default_to_null: flag('Absent keys become null, not the default of the column'),
    head: page.head,
  },
  {
    examples: [
      { table_name: 'cities', insert_body: [{ name: 'Paris', country: 'FR', population: 2_102_650 }] },
    ],
  },
)

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

export const UpdateBody = Type.Object(
  {
    ...target,
    ...output,
    ...filter,
    ...page,
    update_body: member('What to set', { population: 2_102_650 }),
    set: member('Another name of update_body'),
    data: member('Another name of update_body'),
    allow_unbounded: flag('Write every row when there is no condition'),
  },
  {
    examples: [
      {
        table_name: 'cities',
        update_body: { population: 2_102_651 },
        conditions: [{ eq_column: 'name', eq_value: 'Paris' }],
      },
    ],
  },
)

export const DeleteBody = Type.Object(
  {
    ...target,
    ...output,
    ...filter,
    ...page,
    resource_id: member('The row to delete, by column resource_id or the primary key'),
    allow_unbounded: flag('Delete every row when there is no condition'),
  },
  { examples: [{ table_name: 'cities', conditions: [{ eq_column: 'name', eq_value: 'Paris' }] }] },
)

export const TransactionHeaders = Type.Object({
  ...stripNulls,
  'idempotency-key': text('For 24 hours the same key gives the same answer, and nothing is done again'),
})

export const TransactionBody = Type.Object(
  {
    operations: Type.Array(
      Type.Object({
        id: Type.String({
          minLength: 1,
          maxLength: 128,
          description: 'Names the result',
          examples: ['first'],
        }),
        kind: Type.Unsafe<'insert' | 'update' | 'delete' | 'fetch'>({
          type: 'string',
          enum: ['insert', 'update', 'delete', 'fetch'],
        }),
        payload: Type.Record(Type.String(), Type.Unknown(), { description: 'The body of that operation' }),
      }),
      { minItems: 1, description: 'In this order, all or nothing; at most limits.operations of them' },
    ),
    options: Type.Optional(
      Type.Object({
        isolation_level: text('read_committed, repeatable_read or serializable', 'serializable'),
        read_only: flag('Refuse to write'),
      }),
    ),
    idempotency_key: text('In place of the header Idempotency-Key'),
  },
  {
    examples: [
      {
        operations: [
          {
            id: 'first',
            kind: 'insert',
            payload: {
              table_name: 'cities',
              insert_body: { name: 'Lyon', country: 'FR', population: 522_250 },
            },
          },
          {
            id: 'then',
            kind: 'fetch',
            payload: { table_name: 'cities', conditions: [{ eq_column: 'country', eq_value: 'FR' }] },
          },
        ],
      },
    ],
  },
)

export const DataQuery = Type.Object({
  view: Type.String({ minLength: 1, description: 'The table or view', examples: ['cities'] }),
  eq_column: Type.String({ minLength: 1, examples: ['country'] }),
  eq_value: Type.String({ examples: ['FR'] }),
  columns: text('Comma list of columns', 'id,name'),
  limit: count('At most this many rows'),
  offset: count('Skip this many rows'),
  current_page: count('Page, from 1; with page_size'),
  page_size: count('Rows of a page'),
  total_pages: count('Echoed'),
  strip_nulls: flag('Leave out members that are null'),
  sort_by: text('Column to sort by', 'name'),
  sort_direction: Type.Optional(
    Type.Unsafe<string>({ type: 'string', enum: ['asc', 'desc', 'ascending', 'descending'], default: 'asc' }),
  ),
  ...grouping,
  api_key: text('The API key, where no header can be sent'),
})
