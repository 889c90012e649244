import { Type } from 'typebox'
import { named } from '#kernel/http/components.ts'
import { OneOf } from '#kernel/http/schemas.ts'
import { Row } from './grammar.ts'

/** What the data operations answer. */
const CacheKey = Type.String({ pattern: '^[0-9a-f]{64}$' })
const rows = Type.Array(Row)

const PostProcessing = Type.Object(
  {
    grouped: Type.Array(
      Type.Object({
        label: Type.Union([Type.String(), Type.Null()], {
          description:
            'The value of group_by as text, or the start of its day, hour or minute. Ascending by code points; null is last',
        }),
        rows,
        aggregation: Type.Optional(
          Type.Object({
            column: Type.String(),
            strategy: Type.Union([Type.Literal('cumulative_sum'), Type.Null()]),
            sum: Type.Number({ description: 'Exact: it may have more digits than a double' }),
            cumulative_sum: Type.Optional(Type.Number({ description: 'Of this group and all before it' })),
            count: Type.Integer({ description: 'Values that were added up; nulls are none' }),
          }),
        ),
      }),
    ),
  },
  named('PostProcessing'),
)

const envelope = { status: Type.Literal('success'), message: Type.String(), data: rows }

export const RowsRead = Type.Object(
  {
    ...envelope,
    cache_key: CacheKey,
    count: Type.Optional(Type.Integer({ description: 'Rows without limit and offset, when asked for' })),
    has_more: Type.Optional(Type.Boolean({ description: 'True when no limit was given and it cut rows' })),
    post_processing: Type.Optional(PostProcessing),
  },
  named('RowsRead'),
)

const results = Type.Array(
  Type.Object(
    {
      id: Type.String(),
      kind: OneOf(['insert', 'update', 'delete', 'fetch'], named('OperationKind')),
      data: rows,
      affected_rows: Type.Optional(Type.Integer()),
      count: Type.Optional(Type.Integer()),
      data_truncated: Type.Optional(Type.Boolean()),
      data_omitted: Type.Optional(
        Type.Boolean({
          description: 'A replay of an answer above limits.idempotent_answer: only counts were kept',
        }),
      ),
      rows: Type.Optional(Type.Integer({ description: 'Rows of the data that is omitted' })),
      result_sha256: Type.Optional(
        Type.String({ description: 'Of the result that is omitted, without its id' }),
      ),
      cache_key: Type.Optional(CacheKey),
      has_more: Type.Optional(Type.Boolean()),
      post_processing: Type.Optional(PostProcessing),
    },
    named('OperationResult'),
  ),
)
const committed = { committed: Type.Literal(true), results }

export const TransactionDone = Type.Object(
  {
    status: Type.Literal('success'),
    message: Type.String(),
    data: Type.Object(committed),
    ...committed,
  },
  named('TransactionDone'),
)

export const RowsWritten = Type.Object(
  {
    ...envelope,
    affected_rows: Type.Integer(),
    count: Type.Optional(Type.Integer()),
    data_truncated: Type.Optional(
      Type.Boolean({ description: 'More rows were changed than the answer holds' }),
    ),
  },
  named('RowsWritten'),
)

export const Counted = Type.Object(
  {
    status: Type.Literal('success'),
    message: Type.String(),
    data: Type.Object({
      count: Type.Integer(),
      db_name: Type.String(),
      duration_ms: Type.Integer(),
      cache_key: CacheKey,
      cache_lookup_outcome: OneOf(['hit', 'miss', 'bypass']),
    }),
    count: Type.Integer(),
  },
  named('RowsCounted'),
)
