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
import { DeliveryStatus, statusOf } from '../record.ts'
import { createTestDeliveries, deliveriesOf, replaySome, retryDelivery, sentDelivery } from './deliveries.ts'
import { REPLAYABLE } from './replay.ts'
import type { LoggedDelivery } from './store.ts'

const DeliveryFields = {
  id: Id,
  event_id: Type.String({ format: 'uuid', description: 'The same in header webhook-id of each attempt' }),
  route_key: Type.String(),
  status: DeliveryStatus,
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
}
const DeliveryRecord = Type.Object(DeliveryFields, named('WebhookDelivery'))
const SentDelivery = Type.Object(
  {
    ...DeliveryFields,
    request_body: Nullable(
      Type.String({
        description:
          'What each attempt sends; null for a session whose roles may not read what the webhook sends',
      }),
    ),
  },
  named('SentDelivery'),
)
const Replay = Type.Object(
  {
    status: OneOf(REPLAYABLE, { description: 'Deliveries in this state', examples: ['failed'] }),
    cursor: Type.Optional(
      Type.String({
        format: 'uuid',
        description: '`next_cursor` of the answer before, with the same members',
      }),
    ),
  },
  named('WebhookReplay'),
)
const Replayed = Type.Object({
  replayed: Type.Integer({ description: 'Deliveries that are due now, at most 1,000' }),
  next_cursor: Nullable(Type.String({ description: 'For the next ones; null when there are no more' })),
})

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
  status: statusOf(delivery),
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
      querystring: Type.Object({ ...PAGES.query, status: Type.Optional(DeliveryStatus) }),
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
    method: 'GET',
    url: '/admin/webhooks/:id/deliveries/:delivery_id',
    config: { ...config, failures: ['webhook_not_found', 'delivery_not_found'] },
    schema: {
      operationId: 'getWebhookDelivery',
      summary: 'One delivery, with the body that was sent',
      params: ByDelivery,
      response: { 200: successOf(SentDelivery) },
    },
    handler: async ({ kernel, params: { id, delivery_id } }) => {
      const { requestBody, ...sent } = await sentDelivery(kernel, clients, id, delivery_id)
      return success('Delivery found', { ...recordOf(sent), request_body: requestBody })
    },
  })
  app.route({
    method: 'POST',
    url: '/admin/webhooks/:id/replay',
    config: { ...config, failures: ['webhook_not_found', 'webhook_inactive'] },
    schema: {
      operationId: 'replayWebhookDeliveries',
      summary: 'Deliver many events again, oldest first, with all attempts; up to 1,000 by each call',
      params: ByWebhook,
      body: Replay,
      response: { 200: successOf(Replayed) },
    },
    handler: async ({ kernel, params, body: { status, cursor } }) => {
      const selection = { webhookId: params.id, status, since: new Date(0) }
      const { replayed, last } = await replaySome({ kernel, clients, workers }, selection, cursor)
      return success(`${replayed} deliveries are due`, { replayed, next_cursor: last ?? null })
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
