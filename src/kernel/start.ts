import type pg from 'pg'
import { SYSTEM } from './audit/origin.ts'
import { type Clock, createDatabaseClock } from './clock.ts'
import { expectTime, watchDrift } from './clock-drift.ts'
import type { Config } from './config/config.ts'
import { type Coherence, startCoherence } from './db/coherence.ts'
import { type ControlDatabase, connect } from './db/connect.ts'
import { type Alarm, createAlarm } from './db/connection-alarm.ts'
import { createControlServerLookup } from './db/control-server.ts'
import { createPool } from './db/guarded-pool.ts'
import { createJobsDatabase } from './db/jobs-database.ts'
import { MigrationError, pendingMigrations } from './db/migrate.ts'
import { createPipelinedStatements, type PipelinedStatements } from './db/pipelined-statements.ts'
import type { PoolerAddress } from './db/session-settings.ts'
import { watchDisk } from './disk.ts'
import { createEvents } from './events/outbox.ts'
import { createHooks } from './hooks/hooks.ts'
import { createRateLimits } from './http/limits/limits.ts'
import { createOutboundRequests, type Resolve } from './http/outbound/outbound.ts'
import { startJobs } from './jobs.ts'
import type { ControlPath, Kernel } from './kernel.ts'
import type { Log } from './log.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { createOpenStreams } from './open-streams.ts'
import { type Random, secureRandom, uuidv7 } from './random.ts'
import type { Secrets } from './secrets.ts'
import { singleFlight } from './single-flight.ts'
import { lowerPoolPriority } from './thread-priority.ts'
import { createWorkQueue } from './work-queue.ts'

type KernelOptions = {
  readonly config: Config
  readonly controlUrl: string
  /** The pooler, for statements that need no session of their own. */
  readonly pooler?: PoolerAddress | undefined
  readonly secrets: Secrets
  readonly log: Log
  /** Refuses to start when the clocks differ by more than this, milliseconds. */
  readonly maxDrift?: number
  /** Changes the database's time; for tests, which turn the clock. */
  readonly turned?: (now: Clock) => Clock
  readonly random?: Random
  /** For the host names of outbound requests; for tests. */
  readonly resolve?: Resolve
}

type StartedKernel = {
  readonly kernel: Kernel
  /** Sets the port that was found, for `publicUrl`. */
  setPort(port: number): void
  close(): Promise<void>
}

/** Opens everything that a kernel contains, or nothing if a part fails. The schema must exist. */
export async function startKernel(options: KernelOptions): Promise<StartedKernel> {
  const { config, controlUrl: url, log, random = secureRandom, secrets } = options
  await using opened = new AsyncDisposableStack()
  const { control, counters, queue, pipelined, alarm } = openConnections(options, opened)
  const clock = createDatabaseClock()
  await expectTime(control.pool, clock, options.maxDrift)
  await expectSchema(control.pool)
  const now = options.turned?.(clock.now) ?? clock.now
  const id = uuidv7(now(), random)
  const coherence = await startCoherence({ url, pool: control.pool, id, log, onTime: watchDrift(clock, log) })
  opened.defer(() => coherence.close())
  // It renews its lease every second, so it is the first to know.
  coherence.subscribe({ apply: () => {}, clear: alarm.raise })
  const disk = watchDisk(config)
  const outbound = createOutboundRequests(config, options.resolve)
  opened.defer(() => outbound.close())
  const metrics = createMetrics(now)
  const calls = createOutboundRequests(config, options.resolve, { keepsConnections: false })
  const hooks = createHooks(config, { outbound: calls, metrics, now, random, log })
  const jobs = await startJobs({
    database: createJobsDatabase(queue, coherence),
    log,
    migrate: config.database.migrate,
    onFailure: disk.noteFailure,
    onOutcome: (isDone) =>
      metrics.count(isDone ? 'gatehouse_jobs_done_total' : 'gatehouse_jobs_failed_total'),
  })
  opened.defer(() => jobs.stop())
  const limits = createRateLimits(config, counters, now)
  opened.defer(() => limits.close())
  // Of all that is deferred here, the first to end: the calls that run refuse before anything that their callers need is closed.
  opened.defer(() => hooks.close())
  const events = createEvents({ db: control.db, pipelined, coherence, now, random, metrics, log })
  events.subscribe((name) => metrics.event(name))
  let port = config.server.port
  const kernel: Kernel = {
    config,
    db: control.db,
    pipelined,
    controlServer: createControlServerLookup(control.pool),
    ...createHashQueues(config, metrics),
    coherence,
    controlPaths: controlPaths({ control: control.pool, pipelined, coherence, counters }, config),
    now,
    drift: clock.drift,
    random,
    secrets,
    jobs,
    events,
    limits,
    outbound,
    hooks,
    metrics,
    streams: createOpenStreams(log),
    disk,
    log,
    origin: SYSTEM,
    publicUrl: () => config.server.public_url ?? `http://localhost:${port}`,
    port: () => port,
    afterCommit: (work) => work(),
  }
  measure(kernel, control.pool)
  // The event loop does not wait for a slice of time of a hash.
  await lowerPoolPriority()
  const parts = opened.move()
  return {
    kernel,
    setPort: (value) => {
      port = value
    },
    close: () => parts.disposeAsync(),
  }
}

/** Every connection to the control database but the one that listens. */
type Connections = {
  readonly control: ControlDatabase
  /** For the rate limits. */
  readonly counters: pg.Pool
  /** For the job queue. */
  readonly queue: pg.Pool
  readonly pipelined: PipelinedStatements
  readonly alarm: Alarm
}

function openConnections(
  { config, controlUrl: url, pooler, log }: KernelOptions,
  opened: AsyncDisposableStack,
): Connections {
  let isClosing = false
  const onError = (error: Error) => {
    // A server that stops next may break off what has just been ended.
    if (!isClosing)
      log.warn({ event: 'control_connection_lost', error }, 'a connection to the control database broke')
  }
  const { max_connections: max, max_waiting: maxWaiting } = config.database
  const { timeout } = config.limits
  const alarm = createAlarm()
  const shared = { url, pooler, maxWaiting, alarm }
  const pooled = { ...shared, statementTimeout: Math.min(timeout, STATEMENT_TIMEOUT), onError }
  const connections = {
    control: connect({ ...pooled, name: '', max }),
    counters: createPool({ ...pooled, name: 'limits', max: COUNTER_CONNECTIONS }),
    queue: createPool({ ...pooled, name: 'jobs', max: JOB_CONNECTIONS, statementTimeout: JOB_TIMEOUT }),
    pipelined: createPipelinedStatements({
      ...shared,
      count: PIPELINED_CONNECTIONS,
      statementTimeout: Math.min(timeout, PIPELINED_TIMEOUT),
    }),
    alarm,
  }
  opened.defer(() => connections.control.close())
  opened.defer(() => connections.counters.end())
  opened.defer(() => connections.queue.end())
  opened.defer(() => connections.pipelined.close())
  opened.defer(() => {
    isClosing = true
  })
  return connections
}

function createHashQueues(
  { auth: { password } }: Config,
  metrics: Metrics,
): Pick<Kernel, 'hashQueue' | 'foreignHashQueue'> {
  const onRefusal = () => metrics.count('gatehouse_password_queue_full_total')
  return {
    hashQueue: createWorkQueue(password.concurrency, password.queue, onRefusal),
    foreignHashQueue: createWorkQueue(1, FOREIGN_WAIT, onRefusal),
  }
}

function measure({ metrics, drift }: Kernel, pool: pg.Pool): void {
  metrics.gauge('gatehouse_clock_drift_seconds', "The control database's clock is ahead by", [], () => [
    { labels: {}, value: drift() / 1_000 },
  ])
  metrics.gauge('gatehouse_control_connections', 'Connections of the control pool', ['state'], () => [
    { labels: { state: 'idle' }, value: pool.idleCount },
    { labels: { state: 'busy' }, value: pool.totalCount - pool.idleCount },
    { labels: { state: 'waiting' }, value: pool.waitingCount },
  ])
}

/** For the control database, milliseconds: no statement of a request takes a tenth of that. */
const STATEMENT_TIMEOUT = 10_000
/** For the job queue, whose maintenance reads all jobs; milliseconds. */
const JOB_TIMEOUT = 15_000
const JOB_CONNECTIONS = 3
/** For pipelined statements, milliseconds: longer than this they take only on a database in trouble. */
const PIPELINED_TIMEOUT = 5_000
/** Work that may wait for hashes of other systems, milliseconds. */
const FOREIGN_WAIT = 10_000
/** Two, so that a lost connection does not stop all look-ups. */
const PIPELINED_CONNECTIONS = 2
/**
 * For the rate limits, whose statements also run inside transactions: transactions that wait for a second connection
 * of their own pool could wait for each other.
 */
const COUNTER_CONNECTIONS = 3

type Paths = {
  readonly control: pg.Pool
  readonly pipelined: PipelinedStatements
  readonly coherence: Coherence
  readonly counters: pg.Pool
}

/**
 * Every path of requests to the control database. One of them may be dead while the others answer. Callers share a ping: many pings of a
 * silent database would take all connections.
 */
function controlPaths(
  { control, pipelined, coherence, counters }: Paths,
  config: Config,
): readonly ControlPath[] {
  const limits = config.rate_limits.enabled
    ? [{ name: 'rate limits', ping: singleFlight(() => pingPool(counters)) }]
    : []
  return [
    { name: 'transactions', ping: singleFlight(() => pingPool(control)) },
    { name: 'look-ups', ping: singleFlight(pipelined.ping) },
    { name: 'notifications', ping: singleFlight(coherence.ping) },
    ...limits,
  ]
}

const pingPool = async (pool: pg.Pool): Promise<void> => void (await pool.query('select 1'))

/** Throws an error with advice when migrations are missing, before the first statement fails. */
export async function expectSchema(pool: pg.Pool): Promise<void> {
  const pending = await pendingMigrations((text) => pool.query(text))
  if (pending.length === 0) return
  throw new MigrationError(
    `The control database lacks ${pending.join(', ')}: run gatehouse migrate, or set database.migrate to true.`,
  )
}
