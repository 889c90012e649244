import { Type } from 'typebox'
import type { Clients } from '#databases/clients.ts'
import type { App } from '#kernel/http/surface.ts'
import type { GatewayAccess } from '../access.ts'

const ClientNames = Type.Object({
  clients: Type.Array(Type.String(), { examples: [['default', 'logging']] }),
})

export function clientRoutes(app: App, clients: Clients, access: GatewayAccess): void {
  for (const url of ['/clients', '/schema/clients']) {
    app.route({
      method: 'GET',
      url,
      config: { access: access.admin },
      schema: { summary: 'List registered database clients', response: { 200: ClientNames } },
      handler: async () => ({ clients: [...clients.names()] }),
    })
  }
}
