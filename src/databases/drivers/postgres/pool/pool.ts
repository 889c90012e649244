import type { Presence } from '#databases/drivers/driver.ts'
import type { MemoryBudget } from '#databases/drivers/memory-budget.ts'
import { createConnectionWatch, GRACE } from '#databases/drivers/postgres/pool/connection-watch.ts'
import { createConnections } from '#databases/drivers/postgres/pool/connections.ts'
import { resetSession } from '#databases/drivers/postgres/pool/reset-session.ts'
import type { RowClient, Terminate } from '#databases/drivers/postgres/protocol/connection.ts'
import { callerLeft } from '#databases/drivers/presence.ts'
import { fail } from '#databases/failures.ts'
import { createBoundedQueue } from '#kernel/bounded-queue.ts'
import type { CircuitState } from '#kernel/circuit-breaker.ts'

export type PoolOptions = {
  /** Makes one connected client, or throws a Failure. */
  readonly connect: () => Promise<RowClient>
  readonly terminate: Terminate
  readonly maxConnections: number
  readonly slowReaders?: number
  /** Callers above this fail at once instead of piling up in front of a slow database. */
  readonly maxWaiting: number
  /** Also how long a caller waits for a free connection. Milliseconds, as all of these. */
  readonly connectTimeout: number
  /** The server ends a statement by itself then; a connection that is still silent 5 s later is broken off here. */
  readonly statementTimeout: number
  readonly idleTimeout: number
  /** Memory for answers that are read to their end although their readers are slow. */
  readonly readAhead: () => MemoryBudget
}

export type Pool = {
  /** With a presence, the caller is taken out of the queue, and their statement is cancelled, once they have left. */
  acquire(presence?: Presence): Promise<RowClient>
  /** A connection that is idle. */
  takeIdle(presence?: Presence): RowClient | undefined
  /** Whether callers who find no connection wait for one; else they are refused at once. */
  mayWait(): boolean
  isWaitedFor(): boolean
  /** Fewer connections than there may be. */
  mayOpen(): boolean
  /** Gives a connection back; one that is not clean (a transaction, a lost socket) is destroyed instead. */
  release(client: RowClient): void
  stats(): { total: number; idle: number; waiting: number; circuit: CircuitState }
  close(): Promise<void>
}

/** Milliseconds that callers wait beyond their time: under load a connection is free a little later. */
const LENIENCE = 500

/** The connections of one client, opened when needed. Callers who find none wait in order. */
export function createPool(options: PoolOptions): Pool {
  const { maxConnections, maxWaiting, connectTimeout } = options
  const connections = createConnections(options.connect, maxConnections)
  const queue = createBoundedQueue<RowClient, Presence | undefined>({
    max: maxWaiting,
    patience: connectTimeout + LENIENCE,
    refusal: () => fail('client_busy'),
  })
  const watch = createConnectionWatch({ ...options, connections, drop, lookAtWaiting })
  let closed = false

  async function acquire(presence?: Presence): Promise<RowClient> {
    if (closed) throw fail('client_unavailable')
    const client = takeIdle(presence)
    if (client !== undefined) return client
    if (connections.mayOpen()) return take(await open(), presence)
    return queue.wait(presence)
  }

  function takeIdle(presence?: Presence): RowClient | undefined {
    for (let client = connections.takeIdle(); client; client = connections.takeIdle()) {
      if (client.isAlive()) return take(client, presence)
      drop(client)
    }
    return undefined
  }

  async function open(): Promise<RowClient> {
    connections.expectUp()
    try {
      const client = await connections.open()
      client.once('end', () => drop(client))
      watch.start()
      if (closed) client.destroy()
      return client
    } catch (error) {
      // Only a connection that is given back wakes those who wait.
      if (connections.isEmpty()) queue.reject(() => connections.refusalAfter(error))
      throw error
    }
  }

  function drop(client: RowClient): void {
    if (!connections.remove(client)) return
    watch.forget(client)
    client.destroy()
    if (queue.length() > 0 && connections.mayOpen()) open().then(hand, () => {})
  }

  function hand(client: RowClient): void {
    dismissLeft()
    const waiting = queue.next()
    take(client, waiting?.ticket)
    if (waiting) waiting.give(client)
    else connections.makeIdle(client)
  }

  function release(client: RowClient): void {
    if (!connections.has(client)) return
    watch.forget(client)
    if (!closed && client.isClean() && needsReset(client))
      resetSession(client, GRACE).then(() => giveBack(client))
    else giveBack(client)
  }

  function giveBack(client: RowClient): void {
    if (!connections.has(client)) return
    // Connections of the same age are as stale.
    if (client.hasStaleFunction) for (const idle of connections.takeAllIdle()) drop(idle)
    if (closed || !client.isClean()) drop(client)
    else hand(client)
  }

  const dismissLeft = () => queue.reject(callerLeft, (presence) => presence?.hasLeft() === true)

  function lookAtWaiting(): boolean {
    dismissLeft()
    return queue.length() > 0
  }

  async function close(): Promise<void> {
    closed = true
    queue.reject(() => fail('client_unavailable'))
    await Promise.all(connections.takeAllIdle().map((client) => client.end()))
  }

  return {
    acquire,
    takeIdle,
    mayWait: () => !closed && maxWaiting > 0,
    isWaitedFor: () => queue.length() > 0,
    mayOpen: connections.mayOpen,
    release,
    stats: () => ({ ...connections.stats(), waiting: queue.length() }),
    close,
  }
}

function take(client: RowClient, presence: Presence | undefined): RowClient {
  client.since = performance.now()
  client.presence = presence
  return client
}

/** Something may be left on the session that the next caller must not find. */
const needsReset = (client: RowClient): boolean =>
  client.mayBeDirty || (client.pooled === undefined && client.hasChangedSettings())
