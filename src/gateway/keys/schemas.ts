import { Type } from 'typebox'
import { named } from '#kernel/http/document/components.ts'
import { Id, NOT_EMPTY, Nullable, OneOf, PathId, Timestamp } from '#kernel/http/schemas.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { CreatedBy, creatorFor } from '../created-by.ts'
import { KEY_ORDERS, KEY_STATES, type KeyOrder, type UsedKey } from './store.ts'

const Rights = Type.Array(Type.String({ maxLength: 200 }), {
  maxItems: 500,
  examples: [['users.read', 'orders.*']],
})
const ClientName = Nullable(Type.String({ maxLength: 63, examples: ['default'] }))
const BoundTo = Nullable(
  Type.String({
    maxLength: 63,
    description: 'The only client of the key; null: all but the logging client. Management rights need one',
    examples: ['default'],
  }),
)
const Overrides = Type.Array(Type.String({ maxLength: 63 }), {
  maxItems: 100,
  description: 'Clients that pipelines of the key may name besides; default: all (*)',
  examples: [['reports']],
})
export const REQUEST_FIELDS = {
  name: Type.String({ minLength: 1, maxLength: 200, examples: ['reporting'] }),
  description: Type.Optional(Nullable(Type.String({ maxLength: 1_000 }))),
  client_name: Type.Optional(BoundTo),
  rights: Rights,
  client_overrides: Type.Optional(Overrides),
  expires_at: Type.Optional(Nullable(Type.String({ format: 'date-time', description: 'Default: never' }))),
}
export const NewKey = Type.Object(REQUEST_FIELDS)
export const KeyChange = Type.Partial(
  Type.Object({ ...REQUEST_FIELDS, is_active: Type.Boolean() }),
  NOT_EMPTY,
)

const ORDERS = Object.keys(KEY_ORDERS) as KeyOrder['by'][] // the keys of the object
/** Parameters of the list, without those of its pages. */
export const KEY_FILTER = {
  client_name: Type.Optional(Type.String()),
  search: Type.Optional(
    Type.String({
      maxLength: 200,
      description: 'A part of the name, or of the public part (`svc_0123456789abcdef`)',
    }),
  ),
  state: Type.Optional(OneOf(KEY_STATES)),
  sort: Type.Optional(OneOf(ORDERS, { default: 'created_at' })),
  direction: Type.Optional(OneOf(['asc', 'desc'], { default: 'asc' })),
}

export const KeyRecord = Type.Object(
  {
    id: Id,
    public_id: Type.String(),
    name: Type.String(),
    description: Nullable(Type.String()),
    client_name: ClientName,
    rights: Type.Array(Type.String()),
    client_overrides: Type.Array(Type.String()),
    is_active: Type.Boolean(),
    expires_at: Nullable(Timestamp),
    last_used_at: Nullable(Type.Unsafe<Date>({ ...Timestamp, description: 'To the minute; null: never' })),
    created_at: Timestamp,
    created_by: CreatedBy,
    updated_at: Timestamp,
  },
  named('ApiKeyRecord'),
)
export const IssuedKey = Type.Object(
  {
    api_key: Type.String({ description: 'The key itself, which is shown only once' }),
    record: KeyRecord,
  },
  named('IssuedApiKey'),
)
export const ById = Type.Object({ id: PathId })

/** A row as JSON of the gateway. The response schema removes everything else. */
export const recordOf = (kernel: Kernel, key: UsedKey) => ({
  ...key,
  public_id: key.publicId,
  client_name: key.clientName,
  client_overrides: key.clientOverrides,
  is_active: key.isActive,
  expires_at: key.expiresAt,
  last_used_at: key.lastUsedAt,
  created_at: key.createdAt,
  ...creatorFor(kernel, key),
  updated_at: key.updatedAt,
})
