import { type TSchema, Type } from 'typebox'
import { parseJson } from '#databases/request/json.ts'
import { named } from '#kernel/http/document/components.ts'
import { Id, Nullable, OneOf, Parsed, Timestamp } from '#kernel/http/schemas.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { CreatedBy, creatorFor } from '../created-by.ts'
import { conditionsOf } from '../data/grammar.ts'
import { CALLED_OPS, OPS } from './definition.ts'
import type { PublicRoute } from './store.ts'

export const RouteKey = Type.String({
  pattern: '^[a-z0-9][a-z0-9-]{0,62}$',
  description: 'The name in the path: lower-case letters, digits and -, at most 63',
  examples: ['books'],
})
export const ByKey = Type.Object({ route_key: RouteKey })
const AnyOp = OneOf(OPS, named('PublicOperation'))
const RateLimit = Type.Object(
  {
    requests: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
    window_seconds: Type.Integer({ minimum: 1, maximum: 86_400 }),
  },
  { ...named('RateLimit'), description: 'Requests of one address within a window' },
)
const RunAs = OneOf(['caller', 'owner'], {
  ...named('RunAs'),
  description:
    'On a client with row-level security: `caller` is the role of the session or the anonymous role, `owner` the client’s own role',
})

export const factsOf = (kernel: Kernel) => ({
  client_name: Type.String({ minLength: 1, maxLength: 63, examples: ['default'] }),
  allowed_ops: Type.Array(AnyOp, { minItems: 1, maxItems: 50, examples: [['fetch']] }),
  table_name: Type.Optional(
    Nullable(
      Type.String({
        minLength: 1,
        maxLength: 300,
        description: 'The only table, also as schema.table',
        examples: ['books'],
      }),
    ),
  ),
  conditions: Type.Optional(
    Parsed({
      ...conditionsOf(kernel.config.limits.conditions),
      description: 'Always hold, for read and for written rows',
    }),
  ),
  columns: Type.Optional(
    Nullable(
      Type.Array(Type.String({ minLength: 1, maxLength: 63 }), {
        minItems: 1,
        maxItems: kernel.config.limits.columns,
        description: 'The only columns that a body can mention or get',
        examples: [['id', 'title']],
      }),
    ),
  ),
  query: Type.Optional(
    Nullable(
      Type.String({
        minLength: 1,
        maxLength: 20_000,
        description: 'The SQL of operation query: one statement, with $1, $2, … for the params of the body',
      }),
    ),
  ),
  requires_key: Type.Optional(
    Type.Boolean({ description: 'Default: true. False only with a fixed table or query' }),
  ),
  run_as: Type.Optional(RunAs),
  rate_limit: Type.Optional(Nullable(RateLimit)),
  allowed_origins: Type.Optional(
    Nullable(
      Type.Array(Type.String({ minLength: 1, maxLength: 300 }), {
        maxItems: 100,
        description: 'Origins whose pages may read the answers, without cookies; * for every origin',
        examples: [['https://example.com']],
      }),
    ),
  ),
  is_active: Type.Optional(Type.Boolean()),
  metadata: Type.Optional(
    Nullable(Type.Record(Type.String({ maxLength: 200 }), Type.Unknown(), named('Metadata'))),
  ),
})

/** Parameters of the list, without those of its pages. */
export const ROUTE_FILTER = {
  client_name: Type.Optional(Type.String()),
  search: Type.Optional(Type.String({ maxLength: 200, description: 'A part of the key or of the table' })),
  is_active: Type.Optional(Type.Boolean()),
}

export const RouteRecord = Type.Object(
  {
    id: Id,
    route_key: RouteKey,
    client_name: Type.String(),
    allowed_ops: Type.Array(Type.String()),
    table_name: Nullable(Type.String()),
    conditions: Type.Unknown({ description: 'As they were given; null for none' }),
    columns: Nullable(Type.Array(Type.String())),
    query: Nullable(Type.String()),
    requires_key: Type.Boolean(),
    run_as: Type.String(),
    rate_limit: RateLimit,
    allowed_origins: Type.Array(Type.String()),
    is_active: Type.Boolean(),
    metadata: Type.Record(Type.String(), Type.Unknown()),
    created_at: Timestamp,
    created_by: CreatedBy,
    updated_at: Timestamp,
  },
  named('PublicRouteRecord'),
)

/** A row as JSON of the gateway. */
export const recordOf = (kernel: Kernel, route: PublicRoute) => ({
  id: route.id,
  route_key: route.routeKey,
  client_name: route.clientName,
  allowed_ops: route.allowedOps,
  table_name: route.tableName,
  conditions: route.conditions === null ? null : parseJson(route.conditions),
  columns: route.columns,
  query: route.query,
  requires_key: route.requiresKey,
  run_as: route.runAs,
  rate_limit: { requests: route.requests, window_seconds: route.windowSeconds },
  allowed_origins: route.allowedOrigins,
  is_active: route.isActive,
  metadata: route.metadata as Record<string, unknown>, // as it was validated
  created_at: route.createdAt,
  ...creatorFor(kernel, route),
  updated_at: route.updatedAt,
})

export const ParamsBody = Type.Object(
  {
    params: Type.Optional(
      Type.Array(Type.Unknown({ description: 'A value' }), {
        maxItems: 65_535,
        description: 'Values for $1, $2, … in the SQL of the route',
      }),
    ),
  },
  named('PublicQueryBody'),
)
/** The body through a public route, which may fix the table. */
export function throughRoute(schema: TSchema): TSchema {
  // As data/schemas.ts builds it.
  const { properties, required, ...rest } = schema as unknown as {
    readonly properties: Readonly<Record<string, TSchema>>
    readonly required?: readonly string[]
    readonly 'x-component': string
  }
  const { schema_name: _schema, allow_unbounded: _unbounded, ...members } = properties
  return Type.Unsafe({
    ...rest,
    ...named(`Public${rest['x-component']}`),
    properties: members,
    required: required?.filter((name) => name !== 'table_name') ?? [],
  })
}

export const ByCall = Type.Object({
  route_key: Type.String({ examples: ['books'] }),
  op: OneOf(CALLED_OPS, { examples: ['fetch'] }),
})
