import type { Clients } from '#databases/clients.ts'
import { parseJson } from '#databases/json.ts'
import type { Sessions } from '#identity/sessions.ts'
import type { RouteBook } from '#kernel/http/routes.ts'
import { type App, dressSurface } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { gatewayAccess } from './access.ts'
import { clientRoutes } from './clients/routes.ts'
import { dataRoutes } from './data/routes.ts'
import { type HealthParts, healthRoutes } from './health/routes.ts'
import { keyConfigRoutes } from './keys/config-routes.ts'
import { keyRoutes } from './keys/routes.ts'
import type { AuditLog } from './management/audit.ts'
import { managementRoutes } from './management/routes.ts'
import { rpcRoutes } from './rpc/routes.ts'
import { schemaRoutes } from './schema/routes.ts'
import { sqlRoutes } from './sql/routes.ts'

export type GatewayParts = {
  readonly clients: Clients
  readonly sessions: Sessions
  readonly audit: AuditLog
  readonly adminKey: string
  readonly health: HealthParts
}

/** The data gateway surface: every feature is one line. */
export function gatewaySurface(app: App, kernel: Kernel, book: RouteBook, parts: GatewayParts): void {
  dressSurface(app, kernel, book, {
    name: 'gateway',
    parse: parseJson,
    envelope: ({ message, hint, code, details }, request) => ({
      status: 'error',
      message,
      error: hint ?? message,
      code,
      request_id: request.id,
      ...(details === undefined
        ? {}
        : { data: { operation: operationOf(request.routeOptions.url), details } }),
    }),
  })
  app.decorateRequest('gateway', undefined)
  const access = gatewayAccess(kernel, parts)
  app.addHook('preHandler', access.renew)

  healthRoutes(app, kernel, access, book, parts.health)
  clientRoutes(app, kernel, parts.clients, access)
  keyRoutes(app, kernel, access)
  keyConfigRoutes(app, kernel, parts.clients, access)
  dataRoutes(app, kernel, access)
  managementRoutes(app, kernel, access, parts.audit)
  sqlRoutes(app, kernel, access)
  rpcRoutes(app, kernel, access)
  schemaRoutes(app, access)
}

/** `/gateway/fetch` → `gateway_fetch`; an address that does not exist has none. */
const operationOf = (url: string | undefined): string =>
  url === undefined ? 'unknown' : url.replace(/[{}:]/g, '').split('/').filter(Boolean).join('_')
