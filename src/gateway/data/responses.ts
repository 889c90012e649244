import { Type } from 'typebox'
import { named } from '#kernel/http/document/components.ts'
import { OneOf } from '#kernel/http/schemas.ts'
import { Row } from './grammar.ts'

/** Response schemas of the data operations. */
const CacheKey = Type.String({ pattern: '^[0-9a-f]{64}$' })
const rows = Type.Array(Row)

const Aggregation = Type.Object(
  {
    column: Type.String(),
    strategy: Type.Union([Type.Literal('cumulative_sum'), Type.Null()]),
    sum: Type.Number({ description: 'Exact, so it may have more digits than a double' }),
    cumulative_sum: Type.Optional(Type.Number({ description: 'Sum of this group and all groups before it' })),
    count: Type.Integer({ description: 'Values that were added up; nulls are none' }),
  },
  named('Aggregation'),
)

const PostProcessing = Type.Object(
  {
    grouped: Type.Array(
      Type.Object(
        {
          label: Type.Union([Type.String(), Type.Null()], {
            description:
              'The value of group_by as text, or the start of its day, hour or minute. Sorted ascending by code points; null is last',
          }),
          rows,
          aggregation: Type.Optional(Aggregation),
        },
        named('RowGroup'),
      ),
    ),
  },
  named('PostProcessing'),
)

const ENVELOPE = { status: Type.Literal('success'), message: Type.String(), data: rows }

export const RowsRead = Type.Object(
  {
    ...ENVELOPE,
    cache_key: CacheKey,
    count: Type.Optional(
      Type.Integer({ description: 'Number of rows without limit and offset, if requested' }),
    ),
    has_more: Type.Optional(
      Type.Boolean({ description: 'True if no limit was given and the default limit cut rows' }),
    ),
    total_pages: Type.Optional(Type.Integer({ description: 'total_pages of the request' })),
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
          description: 'Only counts were stored, because the response was above limits.idempotent_answer',
        }),
      ),
      rows: Type.Optional(Type.Integer({ description: 'Number of rows in the omitted data' })),
      result_sha256: Type.Optional(
        Type.String({ description: 'Digest of the omitted result without its id' }),
      ),
      cache_key: Type.Optional(CacheKey),
      has_more: Type.Optional(Type.Boolean()),
      total_pages: Type.Optional(Type.Integer()),
      post_processing: Type.Optional(PostProcessing),
    },
    named('OperationResult'),
  ),
)
const COMMITTED = { committed: Type.Literal(true), results }

export const TransactionDone = Type.Object(
  {
    status: Type.Literal('success'),
    message: Type.String(),
    data: Type.Object(COMMITTED),
    ...COMMITTED,
  },
  named('TransactionDone'),
)

export const RowsWritten = Type.Object(
  {
    ...ENVELOPE,
    affected_rows: Type.Integer(),
    count: Type.Optional(Type.Integer()),
    data_truncated: Type.Optional(
      Type.Boolean({ description: 'More rows were changed than the response contains' }),
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
