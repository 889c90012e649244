import { type Client, errors } from 'cassandra-driver'
import { ask, type Connection, type Host, hostsOf } from '#databases/drivers/scylla/library.ts'

export type Watch = {
  /** A connection beside those of the library. */
  add(host: Host, connection: Connection): void
  remove(connection: Connection): void
  stop(): void
}

type Silence = { readonly bytes: number; readonly since: number; asked: boolean }

/**
 * Closes connections to nodes that no longer answer. A frozen or unreachable node keeps its connections open; the library checks only idle
 * ones, every half minute, and statements would wait for their whole timeout. When statements wait and nothing has arrived for half of
 * `patience` milliseconds, the node is pinged; after all of it the connection is closed, and its statements fail. The library then uses the
 * other nodes and reconnects to this one by itself.
 */
export function watchNodes(client: Client, patience: number): Watch {
  const silences = new WeakMap<Connection, Silence>()
  const single = new Map<Connection, Host>()

  function look(host: Host, connection: Connection): void {
    const bytes = connection.netClient.bytesRead
    const now = performance.now()
    const known = silences.get(connection)
    if (known === undefined || known.bytes !== bytes || connection.getInFlight() === 0) {
      silences.set(connection, { bytes, since: now, asked: false })
      return
    }
    if (!known.asked && now - known.since >= patience / 2) {
      // The other half counts from now on, in case this process was busy.
      silences.set(connection, { bytes, since: now - patience / 2, asked: true })
      ask(connection).catch(() => {})
    } else if (known.asked && now - known.since >= patience) end(host, connection, patience)
  }

  const timer = setInterval(
    () => {
      for (const host of hostsOf(client))
        for (const connection of host.pool.connections) look(host, connection)
      for (const [connection, host] of single) look(host, connection)
    },
    Math.min(1_000, patience / 10),
  ).unref()
  return {
    add: (host, connection) => void single.set(connection, host),
    remove: (connection) => void single.delete(connection),
    stop: () => clearInterval(timer),
  }
}

function end(host: Host, connection: Connection, patience: number): void {
  const error = new errors.OperationTimedOutError(`The host did not answer for ${patience} ms`, host.address)
  connection.clearAndInvokePending(error)
  host.removeFromPool(connection)
  connection.closeAsync().catch(() => {})
}
