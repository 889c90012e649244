import { Client, policies, types } from 'cassandra-driver'
import { createCircuitBreaker, unavailable } from '#databases/drivers/circuit-breaker.ts'
import { createConcurrencyLimit } from '#databases/drivers/concurrency-limit.ts'
import type { DriverStats } from '#databases/drivers/driver.ts'
import { type Page, pageOf, wasApplied } from '#databases/drivers/scylla/cells.ts'
import { connectFailureOf, failureOf, isBrokenOff, isDown, isSick } from '#databases/drivers/scylla/errors.ts'
import {
  amongConnected,
  isAnyConnected,
  type Parameter,
  parametersOf,
} from '#databases/drivers/scylla/library.ts'
import { type Watch, watchNodes } from '#databases/drivers/scylla/liveness.ts'
import { createRetryPolicy } from '#databases/drivers/scylla/retries.ts'
import { runUnprepared, type UnpreparedStatements } from '#databases/drivers/scylla/unprepared.ts'
import { bound } from '#databases/drivers/scylla/values.ts'
import { fail } from '#databases/failures.ts'
import type { Json } from '#databases/request/request.ts'
import type { ScyllaUrl } from '#kernel/config/scylla-url.ts'
import { Failure } from '#kernel/errors.ts'

export type SessionOptions = {
  readonly address: ScyllaUrl
  /** This number times PER_CONNECTION statements run at once, on one connection to each node. */
  readonly maxConnections: number
  readonly maxWaiting: number
  /** Milliseconds, as all of these. `connectTimeout` is also how long a node may be silent. */
  readonly connectTimeout: number
  readonly statementTimeout: number
  readonly idleTimeout: number
  readonly applicationName: string
}

/** The value of one `?`; undefined leaves the column unchanged. `column` is named by the failure of a value that does not fit. */
export type Binding = { readonly value: Json | undefined; readonly column: string }
export type Statement = { readonly text: string; readonly bindings: readonly Binding[] }

export type PageOptions = {
  readonly size: number
  /** Paging state of the previous page. */
  readonly after?: string | undefined
  /** Sees every conditional write that has begun (Paxos). */
  readonly isSerial?: boolean
}

export type Session = {
  page(statement: Statement, options: PageOptions): Promise<Page>
  /** Writes several statements as one; false when a condition failed and nothing was written. */
  write(statements: readonly Statement[]): Promise<boolean>
  /** Types of the parameters. */
  parameters(text: string): Promise<readonly Parameter[]>
  /** Runs unprepared statements of the caller's own text in this keyspace. */
  own<T>(keyspace: string, isWrite: boolean, work: (own: UnpreparedStatements) => Promise<T>): Promise<T>
  /** All rows of a server table, by column names. */
  system<T>(text: string): Promise<T[]>
  stats(): DriverStats
  close(): Promise<void>
}

type Opened = { readonly client: Client; readonly watch: Watch }
type Work<T> = (client: Client, watch: Watch) => Promise<T>

/** CQL runs many statements on one connection at once; the server queues above some hundred. */
const PER_CONNECTION = 16
/** The circuit opens after this many timeouts without a success in between. */
const MOST_LATE = 5
/** The protocol has two bytes for the number of statements of a batch. */
const LARGEST_BATCH = 65_535

/** Connections to the nodes of one cluster: opened on demand, closed when unused or when no node answers. */
export function createSession(options: SessionOptions): Session {
  const { connectTimeout, statementTimeout, idleTimeout } = options
  const breaker = createCircuitBreaker(() => performance.now())
  const places = createConcurrencyLimit({
    places: options.maxConnections * PER_CONNECTION,
    waiting: options.maxWaiting,
    patience: connectTimeout,
  })
  let opened: Promise<Opened> | undefined
  let current: Opened | undefined
  let idle: NodeJS.Timeout | undefined
  let closed = false
  let late = 0

  async function use<T>(isWrite: boolean, work: Work<T>, isProof = true): Promise<T> {
    if (closed) throw fail('client_unavailable')
    if (breaker.state() === 'open') throw breaker.refusal()
    const leave = await places.enter()
    clearTimeout(idle)
    try {
      if (!breaker.allows()) throw breaker.refusal()
      return await judged(isWrite, work, isProof)
    } finally {
      leave()
      if (places.stats().inside === 0 && !closed) idle = setTimeout(retire, idleTimeout).unref()
    }
  }

  /** Every admitted call ends with a verdict for the circuit breaker. `isProof`: a success proves that statements work. */
  async function judged<T>(isWrite: boolean, work: Work<T>, isProof: boolean): Promise<T> {
    const cluster = await connected().catch((error: unknown) => {
      breaker.undecided()
      throw error
    })
    try {
      const result = await work(cluster.client, cluster.watch)
      if (isProof) settled()
      else breaker.undecided()
      return result
    } catch (error) {
      judge(cluster.client, error)
      throw failureOf(error, isWrite)
    }
  }

  function judge(client: Client, error: unknown): void {
    // An error of a closed cluster, or of a value that does not fit.
    if (client !== current?.client || error instanceof Failure) breaker.undecided()
    else if (isDown(error) || !isAnyConnected(client)) {
      breaker.failed()
      retire()
    } else if (isBrokenOff(error)) breaker.undecided()
    else if (!isSick(error)) settled()
    else if (++late >= MOST_LATE || breaker.state() !== 'closed') breaker.failed()
  }

  function settled(): void {
    late = 0
    breaker.succeeded()
  }

  /** Waits no longer than for one node, however many nodes there are to try. */
  async function connected(): Promise<Opened> {
    if (current !== undefined) return current
    opened ??= open()
    return within(opened, connectTimeout)
  }

  async function open(): Promise<Opened> {
    const client = clientOf(options)
    try {
      await client.connect()
    } catch (error) {
      opened = undefined
      breaker.failed()
      end(client)
      throw connectFailureOf(error)
    }
    const cluster = { client, watch: watchNodes(client, connectTimeout) }
    current = cluster
    if (closed) retire()
    return cluster
  }

  /** The library would reconnect in its own time; a new client connects when the circuit breaker allows it. */
  function retire(): void {
    if (current === undefined) return
    current.watch.stop()
    end(current.client)
    opened = undefined
    current = undefined
  }

  async function run(client: Client, { text, bindings }: Statement, how: object): Promise<Page> {
    const given = await values(client, text, bindings)
    return pageOf(await client.execute(text, given, { prepare: true, readTimeout: statementTimeout, ...how }))
  }

  return {
    page: (statement, { size, after, isSerial = false }) =>
      use(false, (client) =>
        run(client, statement, {
          fetchSize: size,
          isIdempotent: true,
          ...(after !== undefined && { pageState: after }),
          ...(isSerial && { consistency: types.consistencies.serial }),
        }),
      ),
    async write(statements) {
      const [first, ...others] = statements
      if (first === undefined) return true
      requireOneBatch(statements)
      return use(true, async (client) => {
        if (others.length === 0) return wasApplied(await run(client, first, {}))
        const queries: { query: string; params: unknown[] }[] = []
        for (const { text, bindings } of statements)
          queries.push({ query: text, params: await values(client, text, bindings) })
        const how = { prepare: true, logged: true, readTimeout: statementTimeout }
        return wasApplied(pageOf(await client.batch(queries, how)))
      })
    },
    parameters: (text) => use(false, (client) => parametersOf(client, text), false),
    own: (keyspace, isWrite, work) =>
      use(isWrite, (client, watch) =>
        runUnprepared(client, { keyspace, statementTimeout, isWrite, watch }, work),
      ),
    system: (text) => use(false, (client) => systemRows(client, text)),
    stats() {
      const { inside, waiting } = places.stats()
      const state = current?.client.getState()
      const total = state
        ? state.getConnectedHosts().reduce((sum, host) => sum + state.getOpenConnections(host), 0)
        : 0
      return { total, idle: inside === 0 ? total : 0, waiting, circuit: breaker.state() }
    },
    async close() {
      closed = true
      clearTimeout(idle)
      const cluster = await opened?.catch(() => undefined)
      cluster?.watch.stop()
      await cluster?.client.shutdown()
    },
  }
}

/** In the background, because the caller should not wait, and a failure no longer matters. */
const end = (client: Client): void => void client.shutdown().catch(() => {})

async function within<T>(work: Promise<T>, milliseconds: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(unavailable(1_000)), milliseconds)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

function requireOneBatch(statements: readonly Statement[]): void {
  if (statements.length <= LARGEST_BATCH) return
  throw fail('too_complex', {
    message: `A write may have ${LARGEST_BATCH} rows at once`,
    hint: `These are ${statements.length}; write them in several calls.`,
  })
}

async function systemRows<T>(client: Client, text: string): Promise<T[]> {
  const rows: T[] = []
  let pageState: string | undefined
  do {
    const page = await client.execute(text, [], { fetchSize: 5_000, ...(pageState && { pageState }) })
    rows.push(...(page.rows as unknown as T[])) // with the columns of the statement
    pageState = page.pageState ?? undefined
  } while (pageState !== undefined)
  return rows
}

async function values(client: Client, text: string, bindings: readonly Binding[]): Promise<unknown[]> {
  const parameters = await parametersOf(client, text)
  return bindings.map(({ value, column }, index) => {
    const parameter = parameters[index]
    if (parameter === undefined) throw new Error('There are more values than parameters')
    return value === undefined ? types.unset : bound(value, parameter.type, column)
  })
}

function clientOf({ address, connectTimeout, applicationName }: SessionOptions): Client {
  const { hosts, port, user, password, keyspace, dc, tls } = address
  const { loadBalancing, reconnection } = policies
  return new Client({
    contactPoints: [...hosts],
    keyspace,
    applicationName,
    ...(dc !== undefined && { localDataCenter: dc }),
    ...(user !== undefined && { credentials: { username: user, password } }),
    ...(tls && { sslOptions: { rejectUnauthorized: true } }),
    protocolOptions: { port },
    // Timeout of the library's own requests, when it connects and prepares; statements have their own.
    socketOptions: { connectTimeout, readTimeout: connectTimeout },
    pooling: {
      // `max_connections` bounds statements, so more than one connection to each node would not help.
      coreConnectionsPerHost: { [types.distance.local]: 1, [types.distance.remote]: 1 },
      // The first statement does not wait for a node that does not answer.
      warmup: false,
    },
    policies: {
      loadBalancing: amongConnected(
        new loadBalancing.TokenAwarePolicy(
          dc === undefined
            ? new loadBalancing.RoundRobinPolicy()
            : new loadBalancing.DCAwareRoundRobinPolicy(dc),
        ),
      ),
      reconnection: new reconnection.ExponentialReconnectionPolicy(1_000, 30_000, false),
      retry: createRetryPolicy(),
      // Write timestamps by the server's clock: with our own, a write could silently lose against an earlier one.
      timestampGeneration: null as never, // the library takes null, its types do not
    },
    // Reads see earlier writes, also on another node.
    queryOptions: { consistency: types.consistencies.localQuorum },
    // For server tables; cells of other tables are bytes (cells.ts).
    encoding: { map: Map, copyBuffer: false },
    monitorReporting: { enabled: false },
  })
}
