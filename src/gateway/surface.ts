import type { Clients } from '#databases/clients/clients.ts'
import { parseJson } from '#databases/request/json.ts'
import type { JwtKeys } from '#identity/jwt/key-ring.ts'
import type { Sessions } from '#identity/live-sessions.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import type { RouteBook } from '#kernel/http/routes.ts'
import { type App, addFeature, configureSurface } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { backupRoutes } from './backups/routes.ts'
import type { BackupSources } from './backups/sources.ts'
import { gatewayAccess } from './caller/access.ts'
import { originOf } from './caller/caller.ts'
import { operatorOf } from './caller/operator-proof.ts'
import { recordRefusedAct } from './caller/refused-acts.ts'
import { clientRoutes } from './clients/routes.ts'
import { dataRoutes } from './data/routes.ts'
import { GATEWAY_CODES } from './errors.ts'
import { type HealthParts, healthRoutes } from './health/routes.ts'
import { importRoutes } from './import/routes.ts'
import { type InsightParts, insightRoutes } from './insights/routes.ts'
import { keyConfigRoutes } from './keys/config-routes.ts'
import { keyRoutes } from './keys/routes.ts'
import type { AuditLog } from './management/audit.ts'
import { managementRoutes } from './management/routes.ts'
import type { PipelineRegistry } from './pipelines/registry.ts'
import { pipelineRoutes } from './pipelines/routes.ts'
import { templateRoutes } from './pipelines/template-routes.ts'
import { publicRouteRoutes } from './public-routes/routes.ts'
import { subscriptionRoutes } from './public-routes/subscriptions.ts'
import { createRealtime } from './realtime/realtime.ts'
import { realtimeRoutes } from './realtime/routes.ts'
import { rpcRoutes } from './rpc/routes.ts'
import { schemaRoutes } from './schema/routes.ts'
import { seeAsRoutes } from './see-as/routes.ts'
import { sqlRoutes } from './sql/routes.ts'
import { storageRoutes } from './storage/routes.ts'
import type { DeliveryWorkers } from './webhooks/delivery/workers.ts'
import { deliveryRoutes } from './webhooks/log/routes.ts'
import { webhookRoutes } from './webhooks/routes.ts'

export type GatewayParts = {
  readonly clients: Clients
  readonly sessions: Sessions
  readonly jwtKeys: JwtKeys
  readonly audit: AuditLog
  readonly pipelines: PipelineRegistry
  readonly deliveries: DeliveryWorkers
  readonly adminKey: string
  readonly health: HealthParts
  readonly insights: InsightParts
  readonly backups: BackupSources
}

/** The data gateway surface, with one line per feature. */
export function gatewaySurface(app: App, kernel: Kernel, book: RouteBook, parts: GatewayParts): void {
  configureSurface(app, kernel, book, {
    name: 'gateway',
    nullIsAbsent: true,
    refusesMisspelt: true,
    parse: parseJson,
    originOf,
    operatorOf: (request) => operatorOf(kernel, request),
    codes: GATEWAY_CODES,
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
  app.decorateRequest('grant', undefined)
  app.decorateRequest('operating', undefined)
  app.decorateRequest('operatorDemand', undefined)
  app.decorateRequest('isOperator', false)
  app.decorateRequest('impersonation', undefined)
  const access = gatewayAccess(kernel, parts)
  app.addHook('preHandler', access.renew.hook)
  app.decorateReply('watchCaller', function () {
    return access.renew.watch(this.request, this)
  })
  app.addHook('onError', async (request, _reply, error) => recordRefusedAct(kernel, request, error))
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (kernel.events.takeLost(request.id)) reply.header(HEADER.events, 'lost')
    done()
  })

  const realtime = createRealtime(kernel, access.renew)
  const { clients, backups, deliveries, pipelines, health, insights } = parts
  addFeature(app, FEATURES.data, (app) => dataRoutes(app, kernel, access))
  addFeature(app, FEATURES.realtime, (app) => realtimeRoutes(app, kernel, access, realtime))
  addFeature(app, FEATURES.import, (app) => importRoutes(app, kernel, access))
  addFeature(app, FEATURES.sql, (app) => sqlRoutes(app, kernel, access))
  addFeature(app, FEATURES.rpc, (app) => rpcRoutes(app, kernel, access))
  addFeature(app, FEATURES.pipelines, (app) => {
    pipelineRoutes(app, kernel, access, pipelines)
    templateRoutes(app, access, pipelines)
  })
  addFeature(app, FEATURES.management, (app) => managementRoutes(app, kernel, access, parts))
  addFeature(app, FEATURES.schema, (app) => schemaRoutes(app, access))
  addFeature(app, FEATURES.seeAs, (app) => seeAsRoutes(app, kernel, access))
  addFeature(app, FEATURES.clients, (app) => clientRoutes(app, kernel, clients, access))
  addFeature(app, FEATURES.keys, (app) => {
    keyRoutes(app, kernel, clients, access)
    keyConfigRoutes(app, kernel, clients, access)
  })
  addFeature(app, FEATURES.storage, (app) => storageRoutes(app, kernel, access))
  addFeature(app, FEATURES.publicRoutes, (app) => {
    publicRouteRoutes(app, kernel, clients, access)
    subscriptionRoutes(app, kernel, access, realtime)
  })
  addFeature(app, FEATURES.webhooks, (app) => {
    webhookRoutes(app, kernel, clients, access)
    deliveryRoutes(app, clients, access, deliveries)
  })
  addFeature(app, FEATURES.backups, (app) => backupRoutes(app, kernel, access, backups))
  addFeature(app, FEATURES.insights, (app) => insightRoutes(app, kernel, access, insights))
  addFeature(app, FEATURES.health, (app) => healthRoutes(app, kernel, access, book, health))
}

/** Tags of the API reference, one per feature. */
const FEATURES = {
  data: {
    name: 'Data',
    description: 'Rows of a client: read, count, insert, update, delete, in transactions',
  },
  realtime: { name: 'Live rows', description: 'Streams of rows: those of now, and then every change' },
  import: { name: 'Import', description: 'Files of rows: CSV and JSON lines' },
  sql: { name: 'SQL', description: 'The caller’s own SQL and CQL' },
  rpc: { name: 'Functions', description: 'Functions of a client’s database' },
  pipelines: {
    name: 'Pipelines',
    description: 'Rows of one table, transformed and inserted into another, also between clients',
  },
  management: {
    name: 'Management',
    description:
      'Tables, columns, indexes, extensions, functions and policies of a client, changed with an audit log',
  },
  schema: { name: 'Schema', description: 'The structure of a client’s database' },
  seeAs: {
    name: 'See as',
    description: 'The rows that policies show to a user, a visitor, or anyone signed in',
  },
  clients: { name: 'Clients', description: 'Database clients and their connections' },
  keys: { name: 'API keys', description: 'API keys, their rights, and the clients that require them' },
  storage: {
    name: 'Object storage',
    description: 'Objects of S3-compatible servers, with the caller’s credentials',
  },
  publicRoutes: {
    name: 'Public routes',
    description: 'Parts of a client that are open to callers, with a rate limit and with or without a key',
  },
  webhooks: { name: 'Webhooks', description: 'Signed requests to your servers after operations and events' },
  backups: { name: 'Backups', description: 'Backups of clients and of the embedded server, and restores' },
  insights: {
    name: 'Insights',
    description: 'Problems, settings, recent activity and slowest statements of the service, for operators',
  },
  health: { name: 'Health', description: 'Version, health and metrics of the service' },
}

/** `/gateway/fetch` → `gateway_fetch`; undefined for unknown paths. */
const operationOf = (url: string | undefined): string =>
  url === undefined ? 'unknown' : url.replace(/[{}:]/g, '').split(/[/-]/).filter(Boolean).join('_')
