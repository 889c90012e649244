import { Type } from 'typebox'
import type { Clients } from '#databases/clients/clients.ts'
import { named } from '#kernel/http/document/components.ts'
import { Nullable, OneOf } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { success, successOf } from '../envelope.ts'
import { describeEnforcement, setClient, setDefault, unsetClient } from './config.ts'

const DECISION = {
  enforce_api_keys: Type.Boolean(),
  source: OneOf(['runtime_client', 'configuration_client', 'runtime', 'configuration'], {
    ...named('KeyEnforcementSource'),
    description: 'Source of the setting',
  }),
}
const KeyConfig = Type.Object({
  ...DECISION,
  clients: Type.Array(
    Type.Object({ client_name: Type.String(), ...DECISION }, named('KeyEnforcementOfClient')),
  ),
})
const ByName = Type.Object({ client_name: Type.String({ maxLength: 63, examples: ['default'] }) })
const ClientDecision = Type.Object({ client_name: Type.String(), enforce_api_keys: Type.Boolean() })

export function keyConfigRoutes(app: App, kernel: Kernel, clients: Clients, access: GatewayAccess): void {
  const config = { access: access.operator('keys') }
  const changing = { access: access.operator('keys', { isProven: true }) }
  const ofClient = {
    ...changing,
    failures: ['client_not_found', 'client_configured', 'api_key_client_not_found'],
  }
  const answer = async (message: string) => {
    const { enforceApiKeys, source, clients: each } = await describeEnforcement(kernel, clients)
    return success(message, {
      enforce_api_keys: enforceApiKeys,
      source,
      clients: each.map((client) => ({
        client_name: client.clientName,
        enforce_api_keys: client.enforceApiKeys,
        source: client.source,
      })),
    })
  }
  app.route({
    method: 'GET',
    url: '/admin/api-key-config',
    config,
    schema: {
      operationId: 'getKeyEnforcement',
      summary: 'Which clients require API keys for data operations, and by which setting',
      response: { 200: successOf(KeyConfig) },
    },
    handler: () => answer('API key configuration'),
  })
  app.route({
    method: 'PUT',
    url: '/admin/api-key-config',
    config: changing,
    schema: {
      operationId: 'setKeyEnforcement',
      summary: 'Set the default for whether data operations require API keys',
      body: Type.Object({
        enforce_api_keys: Nullable(
          Type.Boolean({ description: 'Null restores the configured default', examples: [true] }),
        ),
      }),
      response: { 200: successOf(KeyConfig) },
    },
    handler: async (request) => {
      await setDefault(request.kernel, request.body.enforce_api_keys)
      return answer('API key configuration changed')
    },
  })
  app.route({
    method: 'PUT',
    url: '/admin/api-key-clients/:client_name',
    config: ofClient,
    schema: {
      operationId: 'setClientKeyEnforcement',
      summary: 'Set whether data operations on a client require API keys',
      params: ByName,
      body: Type.Object({ enforce_api_keys: Type.Boolean({ examples: [true] }) }),
      response: { 200: successOf(ClientDecision) },
    },
    handler: async (request) => {
      const { client_name } = request.params
      const { enforce_api_keys } = request.body
      await setClient(request.kernel, clients, client_name, enforce_api_keys)
      return success(`API key setting of client ${client_name} changed`, { client_name, enforce_api_keys })
    },
  })
  app.route({
    method: 'DELETE',
    url: '/admin/api-key-clients/:client_name',
    config: ofClient,
    schema: {
      operationId: 'unsetClientKeyEnforcement',
      summary: 'Remove the run-time setting of a client',
      params: ByName,
      response: { 200: successOf(ByName) },
    },
    handler: async (request) => {
      const { client_name } = request.params
      await unsetClient(request.kernel, client_name)
      return success(`Run-time setting of client ${client_name} removed`, { client_name })
    },
  })
}
