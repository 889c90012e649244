import { Client, policies, types } from 'cassandra-driver'
import { circuit } from '#databases/drivers/circuit.ts'
import type { DriverStats } from '#databases/drivers/driver.ts'
import { gate } from '#databases/drivers/gate.ts'
import { connectFailureOf, failureOf, isDown } from '#databases/drivers/scylla/errors.ts'
import { type Parameter, parametersOf } from '#databases/drivers/scylla/prepared.ts'
import { bound } from '#databases/drivers/scylla/values.ts'
import { fail } from '#databases/failures.ts'
import type { Json } from '#databases/plan.ts'
import type { ScyllaUrl } from '#kernel/config/scylla-url.ts'

export type SessionOptions = {
  readonly address: ScyllaUrl
  /** Statements of this number times `perConnection` run at once, over one connection to each node. */
  readonly maxConnections: number
  readonly maxWaiting: number
  /** Milliseconds, as all of these. */
  readonly connectTimeout: number
  readonly statementTimeout: number
  readonly idleTimeout: number
  readonly applicationName: string
}

/** A value in the place of one `?`; undefined leaves the column alone. `column` is what a misfit is told about. */
export type Binding = { readonly value: Json | undefined; readonly column: string }
export type Statement = { readonly text: string; readonly bindings: readonly Binding[] }

export type PageOptions = {
  readonly size: number
  /** State of the page before. */
  readonly after?: string | undefined
  /** Sees every conditional write that was begun (Paxos). */
  readonly isSerial?: boolean
  /** Of the caller's own text, which may write. */
  readonly isWrite?: boolean
}

export type Session = {
  page(statement: Statement, options: PageOptions): Promise<types.ResultSet>
  /** Several writes as one; false when a condition of theirs did not hold, and then nothing was written. */
  write(statements: readonly Statement[]): Promise<boolean>
  /** Types of the parameters. */
  parameters(text: string): Promise<readonly Parameter[]>
  stats(): DriverStats
  close(): Promise<void>
}

/** CQL runs many statements on one connection at once; the server queues above some hundred. */
const perConnection = 16

/** Connections to the nodes of one cluster: made when needed, let go of when nobody needs them or no node answers. */
export function session(options: SessionOptions): Session {
  const breaker = circuit(() => performance.now())
  const places = gate({
    places: options.maxConnections * perConnection,
    waiting: options.maxWaiting,
    patience: options.connectTimeout,
  })
  let opened: Promise<Client> | undefined
  let current: Client | undefined
  let idle: NodeJS.Timeout | undefined
  let closed = false

  async function use<T>(isWrite: boolean, work: (client: Client) => Promise<T>): Promise<T> {
    if (closed) throw fail('client_unavailable')
    const leave = await places.enter()
    clearTimeout(idle)
    let client: Client | undefined
    try {
      client = await connected()
      return await work(client)
    } catch (error) {
      if (client !== undefined && client === current && isDown(error)) lose()
      throw failureOf(error, isWrite)
    } finally {
      leave()
      if (places.stats().inside === 0 && !closed) idle = setTimeout(retire, options.idleTimeout).unref()
    }
  }

  function connected(): Promise<Client> {
    if (opened === undefined && !breaker.admits()) throw unavailable(breaker.wait())
    opened ??= open()
    return opened
  }

  async function open(): Promise<Client> {
    const client = clientOf(options)
    try {
      await client.connect()
    } catch (error) {
      opened = undefined
      breaker.failed()
      end(client)
      throw connectFailureOf(error)
    }
    breaker.succeeded()
    current = client
    if (closed) retire()
    return client
  }

  /** The library would look for the nodes in its own time; a new client looks when the circuit lets it. */
  function lose(): void {
    breaker.failed()
    retire()
  }

  function retire(): void {
    if (current === undefined) return
    end(current)
    opened = undefined
    current = undefined
  }

  async function run(client: Client, { text, bindings }: Statement, how: object): Promise<types.ResultSet> {
    return client.execute(text, await values(client, text, bindings), { prepare: true, ...how })
  }

  return {
    page: (statement, { size, after, isSerial = false, isWrite = false }) =>
      use(isWrite, (client) =>
        run(client, statement, {
          fetchSize: size,
          isIdempotent: !isWrite,
          ...(after !== undefined && { pageState: after }),
          ...(isSerial && { consistency: types.consistencies.serial }),
        }),
      ),
    write: (statements) =>
      use(true, async (client) => {
        const [first, ...others] = statements
        if (first === undefined) return true
        if (others.length === 0) return (await run(client, first, {})).wasApplied()
        const queries: { query: string; params: unknown[] }[] = []
        for (const { text, bindings } of statements)
          queries.push({ query: text, params: await values(client, text, bindings) })
        return (await client.batch(queries, { prepare: true, logged: true })).wasApplied()
      }),
    parameters: (text) => use(false, (client) => parametersOf(client, text)),
    stats() {
      const { inside, waiting } = places.stats()
      const state = current?.getState()
      const total = state
        ? state.getConnectedHosts().reduce((sum, host) => sum + state.getOpenConnections(host), 0)
        : 0
      return { total, idle: inside === 0 ? total : 0, waiting, circuit: breaker.state() }
    },
    async close() {
      closed = true
      clearTimeout(idle)
      const client = await opened?.catch(() => undefined)
      await client?.shutdown()
    },
  }
}

/** In the background: who asked has waited long enough, and what fails now was of no use any more. */
const end = (client: Client): void => void client.shutdown().catch(() => {})

const unavailable = (wait: number) =>
  fail('client_unavailable', { headers: { 'retry-after': String(Math.max(1, Math.ceil(wait / 1_000))) } })

async function values(client: Client, text: string, bindings: readonly Binding[]): Promise<unknown[]> {
  const parameters = await parametersOf(client, text)
  return bindings.map(({ value, column }, index) => {
    const parameter = parameters[index]
    if (parameter === undefined)
      throw fail('invalid_sql', { message: 'There are more values than parameters' })
    return value === undefined ? types.unset : bound(value, parameter.type, column)
  })
}

function clientOf({ address, connectTimeout, statementTimeout, applicationName }: SessionOptions): Client {
  const { hosts, port, user, password, keyspace, dc, tls } = address
  const { loadBalancing } = policies
  return new Client({
    contactPoints: [...hosts],
    keyspace,
    applicationName,
    ...(dc !== undefined && { localDataCenter: dc }),
    ...(user !== undefined && { credentials: { username: user, password } }),
    ...(tls && { sslOptions: { rejectUnauthorized: true } }),
    protocolOptions: { port },
    socketOptions: { connectTimeout, readTimeout: statementTimeout },
    // `max_connections` bounds statements, so more connections than one to each node would carry no more.
    pooling: { coreConnectionsPerHost: { [types.distance.local]: 1, [types.distance.remote]: 1 } },
    policies: {
      loadBalancing: new loadBalancing.TokenAwarePolicy(
        dc === undefined
          ? new loadBalancing.RoundRobinPolicy()
          : new loadBalancing.DCAwareRoundRobinPolicy(dc),
      ),
      // Times of writes by the server's clock: with ours, a write could lose silently against one from before it.
      timestampGeneration: null as never, // the library takes null, its types do not
    },
    // Who has written reads what was written, also from another node.
    queryOptions: { consistency: types.consistencies.localQuorum },
    encoding: { map: Map, useBigIntAsLong: true, copyBuffer: false },
    monitorReporting: { enabled: false },
  })
}
