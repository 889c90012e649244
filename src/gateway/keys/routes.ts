import { Type } from 'typebox'
import type { Clients } from '#databases/clients/clients.ts'
import { named } from '#kernel/http/document/components.ts'
import { Id, NOT_EMPTY, Nullable, PathId, Timestamp } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { FIXED_RIGHTS } from '#kernel/rights.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { CreatedBy, creatorFor } from '../created-by.ts'
import { success, successOf } from '../envelope.ts'
import { paginationOf } from '../pagination.ts'
import { changeKey, createKey, existing, revokeKey, rotateKey } from './keys.ts'
import { type ApiKey, listKeys } from './store.ts'

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
const REQUEST_FIELDS = {
  name: Type.String({ minLength: 1, maxLength: 200, examples: ['reporting'] }),
  description: Type.Optional(Nullable(Type.String({ maxLength: 1_000 }))),
  client_name: Type.Optional(BoundTo),
  rights: Rights,
  client_overrides: Type.Optional(Overrides),
  expires_at: Type.Optional(Nullable(Type.String({ format: 'date-time', description: 'Default: never' }))),
}
const NewKey = Type.Object(REQUEST_FIELDS)
const KeyChange = Type.Partial(Type.Object({ ...REQUEST_FIELDS, is_active: Type.Boolean() }), NOT_EMPTY)

const KeyRecord = Type.Object(
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
    created_at: Timestamp,
    created_by: CreatedBy,
    updated_at: Timestamp,
  },
  named('ApiKeyRecord'),
)
const IssuedKey = Type.Object(
  {
    api_key: Type.String({ description: 'The key itself, which is shown only once' }),
    record: KeyRecord,
  },
  named('IssuedApiKey'),
)
const ById = Type.Object({ id: PathId })

/** A row as JSON of the gateway. The response schema removes everything else. */
const recordOf = (kernel: Kernel, key: ApiKey) => ({
  ...key,
  public_id: key.publicId,
  client_name: key.clientName,
  client_overrides: key.clientOverrides,
  is_active: key.isActive,
  expires_at: key.expiresAt,
  created_at: key.createdAt,
  ...creatorFor(kernel, key),
  updated_at: key.updatedAt,
})

export function keyRoutes(app: App, kernel: Kernel, clients: Clients, access: GatewayAccess): void {
  const failures = ['invalid_right', 'unknown_client', 'api_key_not_found']
  const config = { access: access.operator('keys'), failures }
  const changing = { access: access.operator('keys', { isProven: true }), failures }
  const { query, pageOf } = paginationOf(kernel.config)
  app.route({
    method: 'GET',
    url: '/admin/api-keys',
    config,
    schema: {
      operationId: 'listApiKeys',
      summary: 'List API keys',
      querystring: Type.Object({ client_name: Type.Optional(Type.String()), ...query }),
      response: { 200: successOf(Type.Object({ api_keys: Type.Array(KeyRecord) })) },
    },
    handler: async ({ kernel, query: { client_name, ...page } }) => {
      const of = client_name === undefined ? {} : { clientName: client_name }
      const keys = await listKeys(kernel.db, { ...pageOf(page), ...of })
      const records = keys.map((key) => recordOf(kernel, key))
      return success(`Listed ${keys.length} API keys`, { api_keys: records })
    },
  })
  app.route({
    method: 'POST',
    url: '/admin/api-keys',
    config: changing,
    schema: {
      operationId: 'createApiKey',
      summary: 'Issue an API key',
      body: NewKey,
      response: { 201: successOf(IssuedKey) },
    },
    handler: async ({ kernel, body }, reply) => {
      const { api_key, record } = await createKey(kernel, clients, body)
      return reply.code(201).send(success('API key issued', { api_key, record: recordOf(kernel, record) }))
    },
  })
  app.route({
    method: 'GET',
    url: '/admin/api-keys/:id',
    config,
    schema: {
      operationId: 'getApiKey',
      summary: 'One API key',
      params: ById,
      response: { 200: successOf(KeyRecord) },
    },
    handler: async ({ kernel, params }) =>
      success('API key found', recordOf(kernel, await existing(kernel, params.id))),
  })
  app.route({
    method: 'PATCH',
    url: '/admin/api-keys/:id',
    config: changing,
    schema: {
      operationId: 'changeApiKey',
      summary: 'Change an API key',
      params: ById,
      body: KeyChange,
      response: { 200: successOf(KeyRecord) },
    },
    handler: async ({ kernel, params, body }) => {
      const changed = await changeKey(kernel, clients, params.id, body)
      return success('API key changed', recordOf(kernel, changed))
    },
  })
  app.route({
    method: 'DELETE',
    url: '/admin/api-keys/:id',
    config: changing,
    schema: {
      operationId: 'revokeApiKey',
      summary: 'Revoke an API key',
      params: ById,
      response: { 200: successOf(ById) },
    },
    handler: async (request) => {
      const { params } = request
      await revokeKey(request.kernel, params.id)
      return success('API key revoked', { id: params.id })
    },
  })
  app.route({
    method: 'POST',
    url: '/admin/api-keys/:id/rotate',
    config: changing,
    schema: {
      operationId: 'rotateApiKey',
      summary: 'Give an API key a new secret',
      params: ById,
      body: Type.Object({
        grace_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 2_592_000, default: 0 })),
      }),
      response: { 200: successOf(IssuedKey) },
    },
    handler: async ({ kernel, params, body }) => {
      const grace = body.grace_seconds ?? 0
      const { api_key, record } = await rotateKey(kernel, params.id, grace)
      return success('API key rotated', { api_key, record: recordOf(kernel, record) })
    },
  })
  app.route({
    method: 'GET',
    url: '/admin/rights/catalog',
    config,
    schema: {
      operationId: 'listRights',
      summary: 'List the rights that a key can have',
      response: {
        200: successOf(
          Type.Object({
            rights: Type.Array(
              Type.Object({ right: Type.String(), description: Type.String() }, named('Right')),
            ),
          }),
        ),
      },
    },
    handler: async () =>
      success('Rights of this version', {
        rights: Object.entries(FIXED_RIGHTS).map(([right, description]) => ({ right, description })),
      }),
  })
}
