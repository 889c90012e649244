import { Type } from 'typebox'
import type { Clients } from '#databases/clients/clients.ts'
import { named } from '#kernel/http/document/components.ts'
import { Nullable, OneOf } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import { FIXED_RIGHTS } from '#kernel/rights.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { success, successOf } from '../envelope.ts'
import { reachOf } from './reach.ts'
import { REQUEST_FIELDS } from './schemas.ts'

const Right = Type.Object({ right: Type.String(), description: Type.String() }, named('Right'))
const Actions = Type.Array(OneOf(['read', 'write', 'delete']))
const Reached = Type.Object(
  {
    client_name: Nullable(Type.String({ description: 'Null: every client but the logging one' })),
    through: OneOf(['requests', 'pipelines'], {
      description: 'Requests name the client; pipelines of the key may name further ones',
    }),
    is_known: Type.Boolean({ description: 'Whether there is such a client now' }),
    has_row_level_security: Nullable(Type.Boolean({ description: 'Null where it depends on the client' })),
    every_table: Actions,
    tables: Type.Array(
      Type.Object(
        { table: Type.String({ examples: ['users', 'sales.orders'] }), actions: Actions },
        named('ReachedTable'),
      ),
    ),
    operations: Type.Array(Right),
  },
  named('ReachedClient'),
)

/** The meaning of rights. */
export function rightsRoutes(app: App, clients: Clients, access: GatewayAccess): void {
  app.route({
    method: 'GET',
    url: '/admin/rights/catalog',
    config: { access: access.operator('keys') },
    schema: {
      operationId: 'listRights',
      summary: 'List the rights that a key can have',
      response: { 200: successOf(Type.Object({ rights: Type.Array(Right) })) },
    },
    handler: async () =>
      success('Rights of this version', {
        rights: Object.entries(FIXED_RIGHTS).map(([right, description]) => ({ right, description })),
      }),
  })
  const { client_name, rights, client_overrides } = REQUEST_FIELDS
  app.route({
    method: 'POST',
    url: '/admin/rights/resolve',
    config: { access: access.operator('keys'), failures: ['invalid_right'] },
    schema: {
      operationId: 'resolveRights',
      summary: 'What a key with these rights can reach',
      description: 'Nothing is changed. The rights may be those of a key, or of one that is not made yet.',
      body: Type.Object({ client_name, rights, client_overrides }),
      response: { 200: successOf(Type.Object({ reach: Type.Array(Reached) })) },
    },
    handler: async ({ body }) => success('Rights resolved', { reach: await reachOf(clients, body) }),
  })
}
