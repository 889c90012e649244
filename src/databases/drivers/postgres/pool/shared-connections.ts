import type { Pool } from '#databases/drivers/postgres/pool/pool.ts'
import { AdaptiveDepth } from '#databases/drivers/postgres/protocol/adaptive-depth.ts'
import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'

/** A connection of the pool that several reads use at the same time (`RowClient.sendPipelined`). */
export type SharedConnection = { readonly client: RowClient; leave(): void }

/** How long a read may delay the next ones, and for how long nothing is shared after that. Milliseconds. */
const PATIENCE = 100
const PAUSE = 5_000

/**
 * Pipelines reads by key on shared connections, as many as the server answers quickly (`AdaptiveDepth`): less work for both sides than a
 * connection for each. A slow read (a table that is being altered, a value of many megabytes) delays all later ones on its connection, so
 * these are moved to other connections. While callers wait for a connection, reads do not join one in use; waiting reads get the next one
 * together. Returns a function that joins a shared connection; it returns undefined when nothing is shared now and the pool is to be used.
 */
export function createSharedConnections(
  pool: Pool,
): () => SharedConnection | Promise<SharedConnection> | undefined {
  const shared = new Set<OpenSharedConnection>()
  /** The connection that waiting readers will share. */
  let next: NextConnection | undefined
  /** The depth of the connection that was used last. */
  let depth = new AdaptiveDepth()
  let closedUntil = 0
  let watch: NodeJS.Timeout | undefined

  function join(): SharedConnection | Promise<SharedConnection> | undefined {
    if (!pool.mayWait() || performance.now() < closedUntil) return undefined
    const connection = pool.isWaitedFor()
      ? undefined
      : (shared.values().find((one) => one.hasRoom()) ?? begin())
    if (connection !== undefined) return connection.join(1)
    return pool.mayOpen() ? undefined : joinNext()
  }

  function begin(): OpenSharedConnection | undefined {
    const client = pool.takeIdle()
    return client && shareOn(client)
  }

  function joinNext(): Promise<SharedConnection> {
    const waiting = next !== undefined && next.users < depth.current() ? next : waitForNext()
    waiting.users++
    return waiting.connection
  }

  function waitForNext(): NextConnection {
    // In the same step, so that no reader joins uncounted.
    const leave = () => {
      if (next === waiting) next = undefined
    }
    const arrive = (client: RowClient) => {
      leave()
      return shareOn(client).join(waiting.users)
    }
    const fail = (error: unknown) => {
      leave()
      throw error
    }
    const waiting: NextConnection = { users: 0, connection: pool.acquire().then(arrive, fail) }
    next = waiting
    return waiting
  }

  function shareOn(client: RowClient): OpenSharedConnection {
    const connection = new OpenSharedConnection(client, () => {
      depth = client.depth
      shared.delete(connection)
      pool.release(client)
    })
    shared.add(connection)
    // After messages that have arrived are read, so that a busy process does not count as a slow read.
    watch ??= setInterval(() => setImmediate(look), PATIENCE / 2).unref()
    return connection
  }

  function look(): void {
    for (const { client } of shared)
      if (client.displaceDelayed(PATIENCE)) closedUntil = performance.now() + PAUSE
    if (shared.size > 0) return
    clearInterval(watch)
    watch = undefined
  }

  return join
}

type NextConnection = { users: number; readonly connection: Promise<SharedConnection> }

class OpenSharedConnection implements SharedConnection {
  readonly client: RowClient
  readonly #onEmpty: () => void
  #users = 0

  constructor(client: RowClient, onEmpty: () => void) {
    this.client = client
    this.#onEmpty = onEmpty
  }

  hasRoom(): boolean {
    return this.#users < this.client.depth.current() && this.client.acceptsQueries()
  }

  join(users: number): this {
    this.#users += users
    return this
  }

  leave(): void {
    this.#users--
    if (this.#users === 0) this.#onEmpty()
  }
}
