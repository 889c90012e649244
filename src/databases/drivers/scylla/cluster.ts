import type { Client } from 'cassandra-driver'
import { createConcurrencyLimit } from '#databases/drivers/concurrency-limit.ts'
import type { DriverStats } from '#databases/drivers/driver.ts'
import {
  type ConnectionOptions,
  createClusterConnection,
} from '#databases/drivers/scylla/cluster-connection.ts'
import { failureOf, isBrokenOff, isDown, isSick } from '#databases/drivers/scylla/errors.ts'
import { isAnyConnected } from '#databases/drivers/scylla/library.ts'
import type { Watch } from '#databases/drivers/scylla/liveness.ts'
import { unavailable } from '#databases/drivers/unavailable.ts'
import { fail } from '#databases/failures.ts'
import { createCircuitBreaker } from '#kernel/circuit-breaker.ts'
import { Failure } from '#kernel/errors.ts'

export type ClusterOptions = ConnectionOptions & {
  /** This number times PER_CONNECTION statements run at once, on one connection to each node. */
  readonly maxConnections: number
  readonly maxWaiting: number
  /** Milliseconds. */
  readonly idleTimeout: number
}

export type Work<T> = (client: Client, watch: Watch) => Promise<T>

/** One cluster with a limit on how many statements run at once, and a circuit breaker. Unused connections are closed. */
export type Cluster = {
  /** `isProof`: a success proves that statements work. */
  use<T>(isWrite: boolean, work: Work<T>, isProof?: boolean): Promise<T>
  stats(): DriverStats
  close(): Promise<void>
}

/** CQL runs many statements on one connection at once; the server queues above some hundred. */
const PER_CONNECTION = 16
/** The circuit opens after this many timeouts without a success in between. */
const MAX_LATE = 5

export function createCluster(options: ClusterOptions): Cluster {
  const breaker = createCircuitBreaker(() => performance.now(), unavailable)
  const connection = createClusterConnection(options, breaker.failed)
  const limit = createConcurrencyLimit({
    places: options.maxConnections * PER_CONNECTION,
    waiting: options.maxWaiting,
    patience: options.connectTimeout,
  })
  let idle: NodeJS.Timeout | undefined
  let closed = false
  let late = 0

  async function use<T>(isWrite: boolean, work: Work<T>, isProof = true): Promise<T> {
    if (closed) throw fail('client_unavailable')
    if (breaker.state() === 'open') throw breaker.refusal()
    const release = await limit.acquire()
    clearTimeout(idle)
    try {
      if (!breaker.allows()) throw breaker.refusal()
      return await judged(isWrite, work, isProof)
    } finally {
      release()
      if (limit.stats().active === 0 && !closed)
        idle = setTimeout(connection.retire, options.idleTimeout).unref()
    }
  }

  /** Every admitted call ends with a verdict for the circuit breaker. */
  async function judged<T>(isWrite: boolean, work: Work<T>, isProof: boolean): Promise<T> {
    const connected = await connection.get().catch((error: unknown) => {
      breaker.undecided()
      throw error
    })
    try {
      const result = await work(connected.client, connected.watch)
      if (isProof) settled()
      else breaker.undecided()
      return result
    } catch (error) {
      judge(connected.client, error)
      throw failureOf(error, isWrite)
    }
  }

  function judge(client: Client, error: unknown): void {
    // An error of a closed cluster, or of a value that does not fit.
    if (client !== connection.current()?.client || error instanceof Failure) breaker.undecided()
    else if (isDown(error) || !isAnyConnected(client)) {
      breaker.failed()
      connection.retire()
    } else if (isBrokenOff(error)) breaker.undecided()
    else if (!isSick(error)) settled()
    else if (++late >= MAX_LATE || breaker.state() !== 'closed') breaker.failed()
  }

  function settled(): void {
    late = 0
    breaker.succeeded()
  }

  return {
    use,
    stats() {
      const { active, waiting } = limit.stats()
      const total = connectionsOf(connection.current()?.client)
      return { total, idle: active === 0 ? total : 0, waiting, circuit: breaker.state() }
    },
    async close() {
      closed = true
      clearTimeout(idle)
      await connection.close()
    },
  }
}

function connectionsOf(client: Client | undefined): number {
  const state = client?.getState()
  if (state === undefined) return 0
  return state.getConnectedHosts().reduce((sum, host) => sum + state.getOpenConnections(host), 0)
}
