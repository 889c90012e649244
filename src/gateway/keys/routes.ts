import { Type } from 'typebox'
import type { Clients } from '#databases/clients/clients.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { success, successOf } from '../envelope.ts'
import { paginationOf } from '../pagination.ts'
import { changeKey, createKey, existing, revokeKey, rotateKey } from './keys.ts'
import { rightsRoutes } from './rights-routes.ts'
import { ById, IssuedKey, KEY_FILTER, KeyChange, KeyRecord, NewKey, recordOf } from './schemas.ts'
import { listKeys } from './store.ts'

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
      querystring: Type.Object({ ...KEY_FILTER, ...query }),
      response: { 200: successOf(Type.Object({ api_keys: Type.Array(KeyRecord) })) },
    },
    handler: async ({ kernel, query: { client_name: clientName, search, state, ...query } }) => {
      const of = { clientName, search, state: state && { is: state, at: kernel.now() } }
      const order = { by: query.sort ?? 'created_at', direction: query.direction ?? 'asc' }
      const keys = await listKeys(kernel.db, { ...pageOf(query), ...of }, order)
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
  rightsRoutes(app, clients, access)
}
