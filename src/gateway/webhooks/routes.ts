import { Type } from 'typebox'
import type { Clients } from '#databases/clients/clients.ts'
import { examplePayload } from '#kernel/events/documented-events.ts'
import { EVENT_NAMES, ROUTE_KEYS } from '#kernel/events/route-keys.ts'
import { EVENTS } from '#kernel/events.ts'
import { named } from '#kernel/http/document/components.ts'
import { NOT_EMPTY, Nullable, OneOf, Parsed, PathId } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { calledClientName } from '../caller/called-client.ts'
import { conditionsOf } from '../data/grammar.ts'
import { success, successOf } from '../envelope.ts'
import { pagination } from '../pagination.ts'
import { DEFAULT_TIMEOUT } from './definition.ts'
import { lastDeliveries } from './log/store.ts'
import {
  ClientName,
  IssuedWebhookRecord,
  LastDelivery,
  lastDeliveryOf,
  recordOf,
  WebhookFields,
  WebhookRecord,
} from './record.ts'
import { countWebhooks, listWebhooks, WEBHOOK_STATES } from './store.ts'
import { changeWebhook, createWebhook, existingWebhook, removeWebhook, rotateSecret } from './webhooks.ts'

const MAX_TIMEOUT = 30_000
const PAGES = pagination({ usual: 50, maximum: 500 })
const Url = Type.String({ minLength: 1, maxLength: 2_048, examples: ['https://example.com/hooks/gatehouse'] })
const Headers = Type.Record(Type.String(), Type.String({ maxLength: 8_192 }), {
  ...named('WebhookHeaders'),
  maxProperties: 50,
  description: 'Sent with each delivery',
  examples: [{ authorization: 'Bearer 6f1c' }],
})
const TimeoutMs = Type.Integer({ minimum: 1, maximum: MAX_TIMEOUT, default: DEFAULT_TIMEOUT })
const Secret = Type.String({
  maxLength: 200,
  description: 'Signs the deliveries (Standard Webhooks): whsec_ and the base64 of 24 to 64 bytes',
  examples: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo='],
})
// The verb names what is wrong with a route key, and where they are listed.
const RouteKey = Type.String({
  maxLength: 100,
  description: `One of: ${ROUTE_KEYS.join(', ')}`,
  examples: ['gateway_insert'],
})

/** The verb requires one of them. */
const EVENTS_WANTED = {
  route_key: Type.Optional(Nullable(RouteKey)),
  route_keys: Type.Optional(
    Type.Array(RouteKey, {
      minItems: 1,
      maxItems: ROUTE_KEYS.length,
      uniqueItems: true,
      description: 'In place of route_key: several',
    }),
  ),
}

const fieldsOf = ({ limits }: Kernel['config']) => ({
  client_name: Type.Optional(ClientName),
  table_name: Type.Optional(
    Nullable(
      Type.String({
        minLength: 1,
        maxLength: 300,
        description: 'Only events of this table',
        examples: ['public.tracks'],
      }),
    ),
  ),
  description: Type.Optional(Nullable(Type.String({ maxLength: 1_000 }))),
  is_active: Type.Optional(Type.Boolean({ default: true })),
  headers: Type.Optional(Nullable(Headers)),
  filter: Type.Optional(
    Parsed(conditionsOf(limits.conditions, [{ operator: 'gt', column: 'rating', value: 3 }]), {
      description:
        'Only events with a row that meets these conditions: eq, neq, gt, gte, lt, lte, in, is, and, or, not; texts are ordered by code points',
    }),
  ),
  timeout_ms: Type.Optional(TimeoutMs),
  secret: Type.Optional(Secret),
})

const ListedWebhook = Type.Object({ ...WebhookFields, last_delivery: LastDelivery }, named('ListedWebhook'))
const WebhookList = Type.Object({
  webhooks: Type.Array(ListedWebhook),
  total: Type.Integer(),
  limit: Type.Integer(),
  offset: Type.Integer(),
})
const EventEntry = Type.Object(
  {
    route_key: OneOf(EVENT_NAMES, named('EventName')),
    category: Type.String(),
    title: Type.String(),
    description: Type.String(),
    table_scope_supported: Type.Boolean(),
    example: Type.Record(Type.String(), Type.Unknown()),
  },
  named('WebhookEvent'),
)
const ById = Type.Object({ id: PathId })

const eventList = EVENT_NAMES.map((name) => {
  const { category, title, description, tableScope = false } = EVENTS[name]
  return {
    route_key: name,
    category,
    title,
    description,
    table_scope_supported: tableScope,
    example: examplePayload(name),
  }
})

export function webhookRoutes(app: App, kernel: Kernel, clients: Clients, access: GatewayAccess): void {
  const config = { access: access.operatorWithClient('webhooks'), failures: ['webhook_not_found'] }
  const refusing = { ...config, failures: [...config.failures, ...REFUSED] }
  const fields = fieldsOf(kernel.config)
  app.route({
    method: 'GET',
    url: '/admin/webhooks',
    config,
    schema: {
      operationId: 'listWebhooks',
      summary: 'List webhooks',
      querystring: Type.Object({
        client_name: Type.Optional(Type.String({ maxLength: 63 })),
        state: Type.Optional(
          OneOf(WEBHOOK_STATES, {
            description: 'failing: the last attempts have failed, or the service has set it inactive',
          }),
        ),
        ...PAGES.query,
      }),
      response: { 200: successOf(WebhookList) },
    },
    handler: async ({ kernel, query: { client_name: clientName, state, ...asked } }) => {
      const page = PAGES.pageOf(asked)
      const [found, total] = await Promise.all([
        listWebhooks(kernel.db, { clientName, state }, page),
        countWebhooks(kernel.db, { clientName, state }),
      ])
      const ids = found.map(({ id }) => id)
      const last = await lastDeliveries(kernel.db, ids)
      const webhooks = found.map((webhook) => ({
        ...recordOf(kernel, webhook),
        last_delivery: lastDeliveryOf(last.find(({ webhookId }) => webhookId === webhook.id)),
      }))
      return success(`Listed ${webhooks.length} webhooks`, { webhooks, total, ...page })
    },
  })
  app.route({
    method: 'POST',
    url: '/admin/webhooks',
    config: refusing,
    schema: {
      operationId: 'createWebhook',
      summary: 'Make a webhook; the answer has its secret, which is shown only once',
      body: Type.Object({ ...EVENTS_WANTED, ...fields, url: Url }),
      response: { 201: successOf(IssuedWebhookRecord) },
    },
    handler: async (request, reply) => {
      const { kernel, body } = request
      const called = calledClientName(request)
      const { webhook, secret } = await createWebhook(kernel, clients, body, called)
      return reply.code(201).send(success('Webhook created', { ...recordOf(kernel, webhook), secret }))
    },
  })
  app.route({
    method: 'GET',
    url: '/admin/webhooks/events',
    config,
    schema: {
      operationId: 'listWebhookEvents',
      summary: 'The events that webhooks can get',
      response: { 200: successOf(Type.Object({ events: Type.Array(EventEntry) })) },
    },
    handler: async () => success(`Listed ${eventList.length} events`, { events: eventList }),
  })
  app.route({
    method: 'GET',
    url: '/admin/webhooks/:id',
    config,
    schema: {
      operationId: 'getWebhook',
      summary: 'One webhook',
      params: ById,
      response: { 200: successOf(WebhookRecord) },
    },
    handler: async ({ kernel, params }) =>
      success('Webhook found', recordOf(kernel, await existingWebhook(kernel, params.id))),
  })
  app.route({
    method: 'PATCH',
    url: '/admin/webhooks/:id',
    config: { ...refusing, failures: [...refusing.failures, 'too_many_requests'] },
    schema: {
      operationId: 'changeWebhook',
      summary:
        'Change a webhook; headers are replaced as a whole, and given again with a url of another origin',
      params: ById,
      body: Type.Partial(Type.Object({ ...EVENTS_WANTED, ...fields, url: Url }), NOT_EMPTY),
      response: { 200: successOf(WebhookRecord) },
    },
    handler: async ({ kernel, params, body }) => {
      const changed = await changeWebhook(kernel, clients, params.id, body)
      return success('Webhook changed', recordOf(kernel, changed))
    },
  })
  app.route({
    method: 'DELETE',
    url: '/admin/webhooks/:id',
    config,
    schema: {
      operationId: 'deleteWebhook',
      summary: 'Delete a webhook',
      params: ById,
      response: { 200: successOf(ById) },
    },
    handler: async (request) => {
      const { params } = request
      await removeWebhook(request.kernel, params.id)
      return success('Webhook deleted', { id: params.id })
    },
  })
  app.route({
    method: 'POST',
    url: '/admin/webhooks/:id/rotate-secret',
    config: { ...config, failures: ['webhook_not_found', 'too_many_requests'] },
    schema: {
      operationId: 'rotateWebhookSecret',
      summary: 'Give a webhook a new secret; for 24 hours deliveries are signed with the former one too',
      params: ById,
      response: { 200: successOf(IssuedWebhookRecord) },
    },
    handler: async ({ kernel, params }) => {
      const { webhook, secret } = await rotateSecret(kernel, clients, params.id)
      return success('Webhook secret rotated', { ...recordOf(kernel, webhook), secret })
    },
  })
}

const REFUSED = [
  'invalid_webhook',
  'invalid_webhook_url',
  'invalid_condition',
  'too_many_conditions',
  'too_deep',
  'invalid_identifier',
]
