import { Type } from 'typebox'
import { parseJson } from '#databases/request/json.ts'
import { named } from '#kernel/http/document/components.ts'
import { Id, Nullable, OneOf, Timestamp } from '#kernel/http/schemas.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { CreatedBy, creatorFor } from '../created-by.ts'
import { openHeaders } from './headers.ts'
import type { LoggedDelivery } from './log/store.ts'
import type { Webhook } from './store.ts'

export const ClientName = Nullable(Type.String({ maxLength: 63, examples: ['default'] }))

export const WebhookFields = {
  id: Id,
  client_name: ClientName,
  route_key: Nullable(Type.String({ description: 'Null where it has several' })),
  route_keys: Type.Array(Type.String()),
  table_name: Nullable(Type.String()),
  url: Type.String(),
  description: Nullable(Type.String()),
  is_active: Type.Boolean(),
  headers: Type.Record(Type.String(), Type.String(), { description: 'Names; the values are not shown' }),
  filter: Type.Unknown({ description: 'Conditions as they were given, or null' }),
  timeout_ms: Type.Integer(),
  consecutive_failures: Type.Integer(),
  disabled_reason: Nullable(Type.String()),
  former_secrets_until: Type.Array(Timestamp, {
    description: 'Until when each secret before a rotation signs the deliveries too',
  }),
  created_at: Timestamp,
  created_by: CreatedBy,
  updated_at: Timestamp,
}
export const WebhookRecord = Type.Object(WebhookFields, named('WebhookRecord'))
export const IssuedWebhookRecord = Type.Object(
  { ...WebhookFields, secret: Type.String({ description: 'Shown only once' }) },
  named('IssuedWebhookRecord'),
)

const STATUSES = ['pending', 'succeeded', 'failed', 'retrying', 'expired'] as const
export const DeliveryStatus = OneOf(STATUSES, {
  ...named('DeliveryStatus'),
  description:
    'expired: it waited when an archive was made that was restored later; it may have been delivered since then, so it is not sent by itself',
})

/** The constraint of the column allows no other word. */
export const statusOf = ({ status }: { readonly status: string }) => status as (typeof STATUSES)[number]

export const LastDelivery = Nullable(
  Type.Object(
    { status: DeliveryStatus, response_status: Nullable(Type.Integer()), created_at: Timestamp },
    named('LastDelivery'),
  ),
)

/** Shown instead of the value of a header. */
const MASK = '***'

export const recordOf = (kernel: Kernel, webhook: Webhook) => ({
  ...webhook,
  client_name: webhook.clientName,
  route_key: webhook.routeKeys.length === 1 ? (webhook.routeKeys[0] ?? null) : null,
  route_keys: webhook.routeKeys,
  table_name: webhook.tableName,
  is_active: webhook.isActive,
  headers: Object.fromEntries(Object.keys(openHeaders(kernel, webhook) ?? {}).map((name) => [name, MASK])),
  filter: webhook.filter === null ? null : parseJson(webhook.filter),
  timeout_ms: webhook.timeoutMs,
  consecutive_failures: webhook.consecutiveFailures,
  disabled_reason: webhook.disabledReason,
  former_secrets_until: webhook.formerSecretsUntil.filter((until) => until > kernel.now()),
  created_at: webhook.createdAt,
  ...creatorFor(kernel, webhook),
  updated_at: webhook.updatedAt,
})

type Last = Pick<LoggedDelivery, 'status' | 'responseStatus' | 'createdAt'>

export const lastDeliveryOf = (last: Last | undefined) =>
  last === undefined
    ? null
    : { status: statusOf(last), response_status: last.responseStatus, created_at: last.createdAt }
