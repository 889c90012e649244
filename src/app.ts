import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { DISCOVERY, discoveryRoutes } from '#auth/jwt/routes.ts'
import { answerMailRequest } from '#auth/mailing/answer-request.ts'
import { authSurface } from '#auth/surface.ts'
import { CONSOLE, consoleRoutes } from '#console/routes.ts'
import { pruneChanges } from '#databases/clients/changes.ts'
import { type Clients, openClients } from '#databases/clients/clients.ts'
import { createBackupRunner } from '#gateway/backups/jobs/runner.ts'
import { backupSchedules } from '#gateway/backups/schedules.ts'
import { createMirrors } from '#gateway/health/mirrors.ts'
import type { InsightParts } from '#gateway/insights/routes.ts'
import { createAuditLog } from '#gateway/management/audit.ts'
import { createPipelineRegistry, type PipelineRegistry } from '#gateway/pipelines/registry.ts'
import { createStepLog } from '#gateway/pipelines/run/step-log.ts'
import { type GatewayParts, gatewaySurface } from '#gateway/surface.ts'
import { createDeliveryWorkers, type DeliveryWorkers } from '#gateway/webhooks/delivery/workers.ts'
import { measureDeliveries } from '#gateway/webhooks/log/retention.ts'
import { testReceiverRoutes } from '#gateway/webhooks/test-receiver/routes.ts'
import { createJwtKeys } from '#identity/jwt/key-ring.ts'
import { createSessions } from '#identity/live-sessions.ts'
import { type Clock, MAX_DRIFT } from '#kernel/clock.ts'
import type { Config } from '#kernel/config/config.ts'
import { addReferenceRoutes, describeRoutes, REFERENCE } from '#kernel/http/document/openapi.ts'
import type { Resolve } from '#kernel/http/outbound/outbound.ts'
import { unlistenable } from '#kernel/http/port.ts'
import type { RouteBook } from '#kernel/http/routes.ts'
import { createServer } from '#kernel/http/server.ts'
import { type App, addFeature } from '#kernel/http/surface.ts'
import { hasTestReceiver } from '#kernel/http/test-receiver.ts'
import type { Handlers, RecurringTask } from '#kernel/jobs.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Log } from '#kernel/log.ts'
import { DEV_MAIL, devMailRoutes, hasDevMail } from '#kernel/mail/dev-page.ts'
import { deliverMail } from '#kernel/mail/mailer.ts'
import { createMailTransport } from '#kernel/mail/transports.ts'
import type { Figures } from '#kernel/metrics.ts'
import type { Random } from '#kernel/random.ts'
import type { Secrets } from '#kernel/secrets.ts'
import { createDeadline, type Deadline, endWithin } from '#kernel/shutdown.ts'
import { startKernel } from '#kernel/start.ts'
import { loggingOwner, type ServiceDatabases } from '#startup/open-databases.ts'
import { recurringTable } from '#startup/recurring-work.ts'

type ServiceOptions = {
  readonly config: Config
  readonly databases: Pick<ServiceDatabases, 'controlUrl' | 'builtIn' | 'logging'> &
    Partial<Pick<ServiceDatabases, 'callerRoles' | 'pooler' | 'embedded' | 'loggingDatabase'>>
  readonly secrets: Secrets
  readonly adminKey: string
  /** Reads a variable of the environment, for clients whose URL is in one. */
  readonly environment?: (name: string) => string | undefined
  readonly log: Log
  /** The named pipelines; its owner replaces them when the file has changed. */
  readonly pipelines?: PipelineRegistry
  /** Changes the database's time; for tests, which turn the clock. */
  readonly turned?: (now: Clock) => Clock
  readonly random?: Random
  /** For the host names of outbound requests; for tests. */
  readonly resolve?: Resolve
  /** Prometheus text of all processes, where there are several. */
  readonly metricsOfAll?: () => Promise<string>
  readonly figuresOfAll?: () => Promise<readonly Figures[]>
  /** Runs the checks of `gatehouse doctor`. Without it there are no findings. */
  readonly doctor?: InsightParts['doctor']
}

export type Service = {
  readonly kernel: Kernel
  readonly app: App
  readonly book: RouteBook
  readonly handlers: Handlers
  readonly recurring: readonly RecurringTask[]
  readonly deliveries: DeliveryWorkers
  /** Starts to answer requests; returns the configured port, or the free one that was found. */
  listen(): Promise<number>
  /** Runs jobs and recurring work in this process. */
  work(): Promise<void>
  /** Finishes running work and closes everything by the deadline; by default `limits.shutdown` from now. */
  stop(deadline?: Deadline): Promise<void>
}

/** Config → running service. The only file that knows every part. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, databases, adminKey, pipelines = createPipelineRegistry(new Map()) } = options
  const { kernel, close, setPort } = await startKernel({
    ...options,
    controlUrl: databases.controlUrl,
    pooler: databases.pooler,
    maxDrift: MAX_DRIFT,
  })
  const audit = createAuditLog(loggingOwner(config, databases), kernel)
  const stepLog = createStepLog(kernel, loggingOwner(config, databases))
  const clients = openClients(kernel, {
    builtIn: databases.builtIn,
    callerRoles: databases.callerRoles,
    loggingReaderUrl: databases.logging?.readerUrl,
    loggingDatabase: databases.loggingDatabase,
    environment: options.environment ?? (() => undefined),
  })

  const sessions = createSessions(kernel)
  const jwtKeys = createJwtKeys(kernel)
  const mirrors = createMirrors(config.cluster.mirrors)
  const deliveries = createDeliveryWorkers(kernel)
  const { builtIn, embedded } = databases
  const backups = { clients, builtIn, embedded, loggingOwner: loggingOwner(config, databases) }
  const backupRunner = createBackupRunner(kernel, backups)

  let draining = false
  const health = {
    isDraining: () => draining,
    checks: () => checksOf(kernel, clients),
    mirrors,
    metrics: options.metricsOfAll ?? (() => kernel.metrics.registry.metrics()),
  }
  const insights = {
    figures: options.figuresOfAll ?? (async () => [kernel.metrics.figures()]),
    doctor: options.doctor ?? (async () => []),
  }
  const parts = {
    ...{ clients, sessions, jwtKeys, audit, backups, deliveries, pipelines, adminKey },
    ...{ health, insights },
  }
  const { app, book } = addSurfaces(kernel, parts)
  measure(kernel, clients)
  measureDeliveries(kernel)
  await app.ready()

  const transport = createMailTransport(config, kernel.now, kernel.random)
  const handlers: Handlers = {
    'answer-mail-request': ({ request: sealed }, id) => answerMailRequest(kernel, { id, sealed }),
    'log-pipeline-steps': ({ steps }) => stepLog.write(steps),
    'run-backup': async ({ job }) => void (await backupRunner.run(job)),
    'send-mail': ({ mail: sealed }, id) => deliverMail(kernel, transport, { id, sealed }),
  }
  const recurring = [
    ...recurringTable(kernel),
    ...backupSchedules(kernel, backups),
    pruneChanges(kernel, clients),
  ]

  return {
    kernel,
    app,
    book,
    handlers,
    recurring,
    deliveries,
    async listen() {
      const port = await listenOn(app, config)
      setPort(port)
      return port
    },
    async work() {
      await kernel.jobs.start(handlers, recurring)
      deliveries.start()
    },
    async stop(deadline = createDeadline(config.limits.shutdown)) {
      draining = true
      backupRunner.stop()
      const endPart = (what: string, milliseconds: number, end: () => Promise<unknown>) =>
        endWithin(what, milliseconds, kernel.log, end)
      await Promise.all([
        endPart('a request', deadline.left('connections'), () => closeServer(app, config, deadline)),
        endPart('a job', deadline.left('work'), () => kernel.jobs.finish()),
        endPart('a delivery', deadline.left('connections'), () => deliveries.stop(deadline.left('work'))),
      ])
      // A mail that is being sent fails, and is tried again.
      transport.close()
      const left = deadline.left('connections')
      await Promise.all([
        endPart('a connection to the control database', left, close),
        endPart('a connection to a client', left, () => clients.close()),
        endPart('a connection to a mirror', left, () => mirrors.close()),
        endPart('a connection to the audit log', left, () => audit.close()),
        endPart('a connection to the log of pipelines', left, () => stepLog.close()),
      ])
    },
  }
}

/** Both surfaces on one server, and a book of their routes. */
export function addSurfaces(
  kernel: Kernel,
  parts: GatewayParts,
): { readonly app: App; readonly book: RouteBook } {
  const { config } = kernel
  const { app, book } = createServer(kernel)
  describeRoutes(app, kernel)
  app.register(async (auth: App) => authSurface(auth, kernel, book, parts), {
    prefix: config.auth.base_path,
  })
  app.register(async (gateway: App) => {
    gatewaySurface(gateway, kernel, book, parts)
    if (config.auth.jwt.enabled)
      addFeature(gateway, DISCOVERY, (app) => discoveryRoutes(app, kernel, parts.jwtKeys))
    if (hasTestReceiver(config)) addFeature(gateway, DEV_MAIL, (app) => testReceiverRoutes(app, kernel))
    if (hasDevMail(config)) addFeature(gateway, DEV_MAIL, (app) => devMailRoutes(app, kernel))
    if (config.docs.enabled) addFeature(gateway, REFERENCE, (app) => addReferenceRoutes(app, kernel))
    if (config.console.enabled) addFeature(gateway, CONSOLE, (app) => consoleRoutes(app, kernel))
  })
  return { app, book }
}

async function listenOn(app: App, { server: { host, port } }: Config): Promise<number> {
  await app.listen({ host, port }).catch((cause) => {
    throw new Error(unlistenable({ host, port }, cause), { cause })
  })
  const address = app.server.address() as AddressInfo // a TCP server's
  return address.port
}

const checksOf = ({ controlPaths }: Kernel, clients: Clients) => [
  {
    name: 'control_database',
    driver: 'postgresql' as const,
    check: async () => {
      await Promise.all(controlPaths.map(({ ping }) => ping()))
      return 'answers'
    },
  },
  ...clients.opened().map(({ name, driver }) => ({
    name: `client:${name}`,
    driver: driver.name,
    check: async () => `${driver.name} ${await driver.probe()}`,
  })),
]

function measure({ metrics, jobs, hashQueue, foreignHashQueue }: Kernel, clients: Clients): void {
  metrics.gauge('gatehouse_jobs_waiting', 'Jobs that wait, by queue', ['queue'], async () =>
    Object.entries(await jobs.depths()).map(([queue, value]) => ({ labels: { queue }, value })),
  )
  metrics.gauge('gatehouse_password_hashes_waiting', 'Password hashes in line', [], () => [
    { labels: {}, value: hashQueue.depth() },
  ])
  metrics.gauge('gatehouse_foreign_hashes_waiting', 'Password hashes of other systems in line', [], () => [
    { labels: {}, value: foreignHashQueue.depth() },
  ])
  metrics.gauge('gatehouse_client_connections', 'Connections to a client', ['client', 'state'], () =>
    clients.opened().flatMap(({ name: client, driver }) => {
      const { total, idle, waiting } = driver.stats()
      return [
        { labels: { client, state: 'idle' }, value: idle },
        { labels: { client, state: 'busy' }, value: total - idle },
        { labels: { client, state: 'waiting' }, value: waiting },
      ]
    }),
  )
}

/**
 * First a phase in which load balancers learn from /health/ready that this process ends, and its connections end with their next answer.
 * Then no connection is accepted any more, running requests finish, and at the deadline the remaining connections are closed.
 */
async function closeServer(app: App, { server: { drain = 0 } }: Config, deadline: Deadline): Promise<void> {
  app.drain()
  await sleep(Math.min(drain, deadline.left('drain')))
  const cutOff = setTimeout(() => app.server.closeAllConnections(), deadline.left('work'))
  await app.stopListening()
  await app.close()
  clearTimeout(cutOff)
}
