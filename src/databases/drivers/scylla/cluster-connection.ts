import { Client, policies, types } from 'cassandra-driver'
import { connectFailureOf } from '#databases/drivers/scylla/errors.ts'
import { amongConnected } from '#databases/drivers/scylla/library.ts'
import { type Watch, watchNodes } from '#databases/drivers/scylla/liveness.ts'
import { createRetryPolicy } from '#databases/drivers/scylla/retries.ts'
import { unavailable } from '#databases/drivers/unavailable.ts'
import type { ScyllaUrl } from '#kernel/config/scylla-url.ts'
import { withTimeout } from '#kernel/timeout.ts'

export type ConnectionOptions = {
  readonly address: ScyllaUrl
  /** Milliseconds. Also how long a node may be silent. */
  readonly connectTimeout: number
  readonly applicationName: string
}

type OpenClient = { readonly client: Client; readonly watch: Watch }

/** The library's client for one cluster, with its connections to the nodes. */
type ClusterConnection = {
  /** Connects if need be. Waits no longer than for one node, however many nodes there are to try. */
  get(): Promise<OpenClient>
  current(): OpenClient | undefined
  /** Closes the connections. The library would reconnect in its own time; the next `get` does at once. */
  retire(): void
  close(): Promise<void>
}

/** `onFailure`: no node could be reached. */
export function createClusterConnection(
  options: ConnectionOptions,
  onFailure: () => void,
): ClusterConnection {
  const { connectTimeout } = options
  let opened: Promise<OpenClient> | undefined
  let current: OpenClient | undefined
  let closed = false

  async function get(): Promise<OpenClient> {
    if (current !== undefined) return current
    opened ??= open()
    return within(opened, connectTimeout)
  }

  async function open(): Promise<OpenClient> {
    const client = clientOf(options)
    try {
      await client.connect()
    } catch (error) {
      opened = undefined
      onFailure()
      end(client)
      throw connectFailureOf(error)
    }
    const connected = { client, watch: watchNodes(client, connectTimeout) }
    current = connected
    if (closed) retire()
    return connected
  }

  function retire(): void {
    if (current === undefined) return
    current.watch.stop()
    end(current.client)
    opened = undefined
    current = undefined
  }

  async function close(): Promise<void> {
    closed = true
    const connected = await opened?.catch(() => undefined)
    connected?.watch.stop()
    await connected?.client.shutdown()
  }

  return { get, current: () => current, retire, close }
}

/** In the background, because the caller should not wait, and a failure no longer matters. */
const end = (client: Client): void => void client.shutdown().catch(() => {})

const within = <T>(work: Promise<T>, milliseconds: number): Promise<T> =>
  withTimeout(work, milliseconds, () => {
    throw unavailable(1_000)
  })

function clientOf({ address, connectTimeout, applicationName }: ConnectionOptions): Client {
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
