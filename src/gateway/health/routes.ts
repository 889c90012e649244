import { Type } from 'typebox'
import { open } from '#kernel/http/access.ts'
import { named } from '#kernel/http/document/components.ts'
import { sendPage, wantsPage } from '#kernel/http/page.ts'
import type { RouteBook } from '#kernel/http/routes.ts'
import { HtmlPage, Nullable, OneOf, PlainText } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { singleFlight } from '#kernel/single-flight.ts'
import { VERSION } from '#kernel/version.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { clusterHealth } from './cluster.ts'
import { type Component, checksOf, componentStates, databaseFacts, readiness, troubles } from './health.ts'
import { FRESH, keepFor, type Mirrors } from './mirrors.ts'
import { startPage } from './start-page.ts'

const ComponentState = Type.Object(
  { name: Type.String(), status: Type.String(), message: Type.Optional(Type.String()) },
  named('HealthOfComponent'),
)
const Health = Type.Object({
  status: Type.String({ description: '`ok`, or `degraded` if a component is offline' }),
  version: Type.Optional(Type.String()),
  versions: Type.Optional(
    Type.Object(
      { gatehouse: Type.String(), node: Type.String(), postgresql: Nullable(Type.String()) },
      named('Versions'),
    ),
  ),
  clock_drift_ms: Type.Optional(
    Nullable(
      Type.Integer({
        description:
          'Milliseconds by which the clock of the control database is ahead; null while it is offline',
      }),
    ),
  ),
  components: Type.Optional(Type.Array(ComponentState)),
})
const Readiness = Type.Object(
  { status: OneOf(['ready', 'unavailable']), problems: Type.Array(Type.String()) },
  named('Readiness'),
)
const Description = Type.Object(
  { name: Type.String(), version: Type.String(), routes: Type.Array(Type.String()) },
  named('DescribeServiceResult'),
)
const Cluster = Type.Object(
  {
    message: Type.String(),
    version: Type.String(),
    athena_api: Type.String({ description: 'Version of this service' }),
    athena_deadpool: Type.String({ description: 'The connections to PostgreSQL: online or offline' }),
    athena_scylladb: Type.String({ description: 'Clients of ScyllaDB: online, offline or not configured' }),
    cargo_toml_version: Type.String({ description: 'Version of this service' }),
    mirrors: Type.Array(
      Type.Object(
        {
          url: Type.String({ format: 'uri' }),
          status: OneOf(['online', 'offline']),
          latency_ms: Type.Number(),
          download_bytes_per_sec: Type.Number(),
          cargo_toml_version: Type.String({
            description: 'Version of the mirror; empty while it is offline',
          }),
          message: Type.String(),
        },
        named('Mirror'),
      ),
    ),
  },
  named('ClusterHealth'),
)
const Alive = Type.Object({ status: Type.Literal('ok') })

export type HealthParts = {
  readonly mirrors: Mirrors
  readonly isDraining: () => boolean
  readonly checks: () => readonly Component[]
  /** Metrics of all processes of this service in Prometheus text format. */
  readonly metrics: () => Promise<string>
}

export function healthRoutes(
  app: App,
  kernel: Kernel,
  access: GatewayAccess,
  book: RouteBook,
  parts: HealthParts,
): void {
  const config = { access: open }
  const stateOfAll = componentStates(parts.checks)
  const stateForAll = keepFor(FRESH, stateOfAll)
  const checks = checksOf(kernel)
  const problemsNow = singleFlight(() => readiness(kernel, checks, parts))
  app.route({
    method: 'GET',
    url: '/',
    config,
    schema: {
      operationId: 'describeService',
      summary: 'Name and endpoints of the service; browsers are led to the console, or get a page',
      response: {
        200: { content: { 'application/json': { schema: Description }, ...HtmlPage.content } },
      },
    },
    handler: async (request, reply) => {
      reply.header('vary', 'Accept')
      if (wantsPage(request)) {
        if (kernel.config.console.enabled) return reply.redirect('/console', 302)
        return sendPage(kernel, reply, startPage(kernel.config))
      }
      const routes = book.entries().map(({ method, path }) => `${method} ${path}`)
      return reply.send({ name: 'Gatehouse', version: VERSION, routes })
    },
  })
  app.route({
    method: 'GET',
    url: '/ping',
    config,
    schema: { operationId: 'ping', summary: 'Answers pong', response: { 200: PlainText } },
    handler: async (_request, reply) => reply.type('text/plain; charset=utf-8').send('pong'),
  })
  app.route({
    method: 'GET',
    url: '/health/live',
    config,
    schema: { operationId: 'isAlive', summary: 'Liveness: the process responds', response: { 200: Alive } },
    handler: async () => ({ status: 'ok' as const }),
  })
  app.route({
    method: 'GET',
    url: '/health/ready',
    config,
    schema: {
      operationId: 'isReady',
      summary: 'Readiness: 503 with the problems if the process cannot serve requests',
      response: {
        200: Readiness,
        503: Readiness,
      },
    },
    handler: async (_request, reply) => {
      const problems = await problemsNow()
      return reply
        .code(problems.length === 0 ? 200 : 503)
        .send({ status: problems.length === 0 ? 'ready' : 'unavailable', problems: [...problems] })
    },
  })
  app.route({
    method: 'GET',
    url: '/health',
    config: { access: access.knowsOperator },
    schema: {
      operationId: 'getHealth',
      summary: 'Health of the service. Versions and components only with the admin key or metrics token',
      response: { 200: Health },
    },
    handler: async ({ isOperator }) => {
      const [components, trouble, facts] = await Promise.all([
        stateOfAll(),
        troubles(checks),
        isOperator ? databaseFacts(kernel) : undefined,
      ])
      const states = [...components, ...trouble]
      const status = states.every((state) => state.status === 'online') ? 'ok' : 'degraded'
      if (!isOperator) return { status }
      return {
        status,
        version: VERSION,
        versions: { gatehouse: VERSION, node: process.versions.node, postgresql: facts?.version ?? null },
        clock_drift_ms: facts?.drift ?? null,
        components: states,
      }
    },
  })
  app.route({
    method: 'GET',
    url: '/health/cluster',
    config,
    schema: {
      operationId: 'getClusterHealth',
      summary: 'Versions and states of this service and of its mirrors, at most five seconds old',
      response: { 200: Cluster },
    },
    handler: async () => {
      const [states, mirrors] = await Promise.all([stateForAll(), parts.mirrors.states()])
      return clusterHealth(states, mirrors)
    },
  })
  if (!kernel.config.metrics.enabled) return
  app.route({
    method: 'GET',
    url: '/metrics',
    config: { access: access.metrics },
    schema: { operationId: 'getMetrics', summary: 'Prometheus metrics', response: { 200: PlainText } },
    handler: async (_request, reply) =>
      reply.type('text/plain; version=0.0.4; charset=utf-8').send(await parts.metrics()),
  })
}
