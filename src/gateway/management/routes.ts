import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { FAILURES_OF } from '#databases/failures.ts'
import { named } from '#kernel/http/document/components.ts'
import { edge } from '#kernel/http/failures.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { gatewayCaller } from '../caller/caller.ts'
import { success, successOf } from '../envelope.ts'
import { capabilities } from './capabilities.ts'
import type { Changer } from './change.ts'
import { extensionRoutes } from './extension-routes.ts'
import { functionRoutes } from './function-routes.ts'
import { indexRoutes } from './index-routes.ts'
import { OPERATIONS } from './operations.ts'
import { policyRoutes } from './policy-routes.ts'
import { realtimeRoutes } from './realtime-routes.ts'
import type { RouteParts } from './route-parts.ts'
import { tableRoutes } from './table-routes.ts'

const Capabilities = Type.Object(
  {
    backend: Type.String({ examples: ['postgresql 18.4'] }),
    retention_mutation_supported: Type.Boolean(),
    replication_mutation_supported: Type.Boolean(),
    supported_operations: Type.Array(Type.String()),
    required_rights: Type.Array(
      Type.Object({ operation: Type.String(), required_right: Type.String() }, named('RequiredRight')),
    ),
    allowed_index_methods: Type.Array(Type.String()),
    allowed_column_data_types: Type.Array(Type.String()),
  },
  named('Capabilities'),
)

/** Parts of the service that changes need. */
type ChangeParts = Pick<Changer, 'audit' | 'clients' | 'pipelines'>

export function managementRoutes(
  app: App,
  kernel: Kernel,
  access: GatewayAccess,
  { audit, clients, pipelines }: ChangeParts,
): void {
  const failures = [...FAILURES_OF.structure, 'audit_unavailable']
  const parts: RouteParts = {
    routeOf: (operation) => {
      const { method, path: url, right } = OPERATIONS[operation]
      const isChange = method !== 'GET'
      const config = { access: access.management(right), failures }
      return { method, url, config, ...(isChange && { preValidation: refuseQuery }) }
    },
    changerOf: (request, reply) => ({
      kernel: request.kernel,
      caller: gatewayCaller(request),
      renewed: () => access.renew.again(request, reply),
      audit,
      clients,
      pipelines,
    }),
  }
  app.route({
    ...parts.routeOf('capabilities'),
    schema: {
      operationId: 'getCapabilities',
      summary: 'Supported management operations of this client',
      response: { 200: successOf(Capabilities) },
    },
    handler: async (request) =>
      success('Management capabilities', await capabilities(gatewayCaller(request))),
  })
  tableRoutes(app, parts)
  indexRoutes(app, parts)
  extensionRoutes(app, parts)
  functionRoutes(app, kernel, parts)
  policyRoutes(app, parts)
  realtimeRoutes(app, parts)
}

/** Changes read their body only. With `?schema_name=other`, a DELETE would drop the table of that name in `public`. */
async function refuseQuery({ query }: FastifyRequest): Promise<void> {
  const field = Object.keys(query ?? {})[0]
  if (field !== undefined)
    throw edge('validation_error', {
      message: `${field} belongs in the JSON body`,
      details: { field, in: 'querystring' },
    })
}
