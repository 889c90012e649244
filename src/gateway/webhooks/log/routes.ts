import { Type } from 'typebox'
import type { Clients } from '#databases/clients/clients.ts'
import type { GatewayAccess } from '#gateway/caller/access.ts'
import { success, successOf } from '#gateway/envelope.ts'
import { pagination } from '#gateway/pagination.ts'
import { COUNTED } from '#kernel/db/total.ts'
import { named } from '#kernel/http/document/components.ts'
import { Id, Nullable, OneOf, PathId, Timestamp } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { DeliveryWorkers } from '../delivery/workers.ts'
import { createTestDeliveries, deliveriesOf, retryDelivery } from './deliveries.ts'
import type { LoggedDelivery } from './store.ts'

const STATUSES = ['pending', 'succeeded', 'failed', 'retrying', 'expired'] as const
const Status = OneOf(STATUSES, {
  ...named('DeliveryStatus'),
  description:
    'expired: it waited when an archive was made that was restored later; it may have been delivered since then, so it is not sent by itself',
})

const DeliveryRecord = Type.Object(
  {
    id: Id,
    event_id: Type.String({ format: 'uuid', description: 'The same in header webhook-id of each attempt' }),
    route_key: Type.String(),
    status: Status,
    attempt: Type.Integer({ description: 'Attempts that were made' }),
    response_status: Nullable(Type.Integer()),
    response_body: Nullable(
      Type.String({
        description:
          'The first 4 KB of the last answer; null for a session whose roles may not read what the webhook sends',
      }),
    ),
    error: Nullable(Type.String()),
    duration_ms: Nullable(Type.Integer()),
    next_attempt_at: Nullable({
      ...Timestamp,
      description: 'Null while an attempt is under way, and after the last one',
    }),
    created_at: Timestamp,
  },
  named('WebhookDelivery'),
)

const PAGES = pagination({ usual: 50, maximum: 500 })
const Deliveries = Type.Object({
  deliveries: Type.Array(DeliveryRecord),
  total: Type.Integer({ description: `Exact to ${COUNTED}, beyond that an estimate` }),
  total_estimated: Type.Boolean({ description: 'Whether `total` is an estimate' }),
  limit: Type.Integer(),
  offset: Type.Integer(),
})
const ByWebhook = Type.Object({ id: PathId })
const ByDelivery = Type.Object({
  id: PathId,
  delivery_id: PathId,
})

/** A row as JSON of the gateway. The response schema removes everything else. */
const recordOf = (delivery: LoggedDelivery) => ({
  ...delivery,
  event_id: delivery.eventId,
  route_key: delivery.routeKey,
  // The constraint of the column allows no other word.
  status: delivery.status as (typeof STATUSES)[number],
  response_status: delivery.responseStatus,
  response_body: delivery.responseBody,
  duration_ms: delivery.durationMs,
  next_attempt_at: delivery.claimedUntil === null ? delivery.nextAttemptAt : null,
  created_at: delivery.createdAt,
})

export function deliveryRoutes(
  app: App,
  clients: Clients,
  access: GatewayAccess,
  workers: DeliveryWorkers,
): void {
  const config = { access: access.operatorWithClient('webhooks'), failures: ['webhook_not_found'] }
  const sendTest = createTestDeliveries()
  app.route({
    method: 'GET',
    url: '/admin/webhooks/:id/deliveries',
    config,
    schema: {
      operationId: 'listWebhookDeliveries',
      summary: 'Deliveries of a webhook, newest first',
      params: ByWebhook,
      querystring: Type.Object({ ...PAGES.query, status: Type.Optional(Status) }),
      response: { 200: successOf(Deliveries) },
    },
    handler: async ({ kernel, params, query: { status, ...asked } }) => {
      const page = PAGES.pageOf(asked)
      const { deliveries, total, totalEstimated } = await deliveriesOf(kernel, clients, params.id, {
        status,
        page,
      })
      const data = {
        deliveries: deliveries.map(recordOf),
        total,
        total_estimated: totalEstimated,
        ...page,
      }
      return success(`Listed ${deliveries.length} deliveries`, data)
    },
  })
  app.route({
    method: 'POST',
    url: '/admin/webhooks/:id/deliveries/:delivery_id/retry',
    config: {
      ...config,
      failures: ['webhook_not_found', 'delivery_not_found', 'webhook_inactive', 'delivery_in_flight'],
    },
    schema: {
      operationId: 'retryWebhookDelivery',
      summary: 'Deliver an event again, with all attempts',
      params: ByDelivery,
      response: { 200: successOf(DeliveryRecord) },
    },
    handler: async ({ kernel, params: { id, delivery_id } }) => {
      const due = await retryDelivery({ kernel, clients, workers }, id, delivery_id)
      return success('The delivery is due', recordOf(due))
    },
  })
  app.route({
    method: 'POST',
    url: '/admin/webhooks/:id/test',
    config: { ...config, failures: ['webhook_not_found', 'webhook_unreadable', 'too_many_requests'] },
    schema: {
      operationId: 'testWebhook',
      summary: 'Send one signed example now, and answer with its delivery',
      params: ByWebhook,
      response: { 200: successOf(DeliveryRecord) },
    },
    handler: async ({ kernel, params }) => {
      const delivery = await sendTest(kernel, clients, params.id)
      return success(delivery.error ?? 'The endpoint accepted the test', recordOf(delivery))
    },
  })
}
