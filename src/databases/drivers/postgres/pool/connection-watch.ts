import type { MemoryBudget } from '#databases/drivers/memory-budget.ts'
import type { Connections } from '#databases/drivers/postgres/pool/connections.ts'
import type { RowClient, Terminate } from '#databases/drivers/postgres/protocol/connection.ts'

type WatchOptions = {
  readonly connections: Connections
  readonly terminate: Terminate
  readonly maxConnections: number
  /** Connections that may wait for slow readers. Default: half of the pool. */
  readonly slowReaders?: number | undefined
  /** Milliseconds, as all of these. */
  readonly statementTimeout: number
  readonly idleTimeout: number
  readonly readAhead: () => MemoryBudget
  /** Destroys a connection, and takes it out of the pool. */
  readonly drop: (client: RowClient) => void
  /** Looks at the callers who wait for a connection. False: there are none. */
  readonly lookAtWaiting: () => boolean
}

type ConnectionWatch = {
  /** Looks at all connections from now on, as long as there are any. */
  start(): void
  /** The connection is free: its reader is not slow any more. */
  forget(client: RowClient): void
}

/** How long a connection may be silent after its statement should have ended, and a statement after it was cancelled. */
export const GRACE = 5_000
const CANCEL_GRACE = 1_000
/** The time between two looks at the connections. */
const TICK = 100
/** A reader who keeps a connection waiting for longer is a slow one. */
const SLOW_READER = 200

/** Ends connections that have been idle or silent for too long, and statements whose callers have left. */
export function createConnectionWatch(options: WatchOptions): ConnectionWatch {
  const { connections, terminate, drop } = options
  /** Connections that wait for slow readers. The answers of further readers are read to their end. */
  const slow = new Set<RowClient>()
  const { slowReaders = Math.floor(options.maxConnections / 2) } = options
  let timer: NodeJS.Timeout | undefined

  function look(): void {
    const now = performance.now()
    for (const client of connections.all()) {
      if (client.isBusy()) lookAtBusy(client, now)
      else if (connections.isIdle(client) && now - client.since > options.idleTimeout) retire(client)
    }
    if (options.lookAtWaiting() || !connections.isEmpty()) return
    clearInterval(timer)
    timer = undefined
  }

  function lookAtBusy(client: RowClient, now: number): void {
    const late = now - client.since - options.statementTimeout
    if (client.isLeft()) client.stop({ grace: CANCEL_GRACE, terminate })
    else if (client.pausedSince !== undefined) lookAtReader(client, now - client.pausedSince)
    else if (late > GRACE) breakOff(client)
    else if (late > 0 && client.active?.isLong) client.stop({ grace: GRACE, terminate })
  }

  /** A silent connection is rarely alone: the network has probably forgotten the idle ones as well. */
  function breakOff(client: RowClient): void {
    client.destroy()
    for (const other of connections.idle()) drop(other)
  }

  function lookAtReader(client: RowClient, paused: number): void {
    if (paused < SLOW_READER || slow.has(client)) return
    if (slow.size < slowReaders) slow.add(client)
    else client.active?.readAhead?.(options.readAhead())
  }

  function retire(client: RowClient): void {
    connections.remove(client)
    void client.end()
  }

  return {
    start() {
      timer ??= setInterval(look, TICK).unref()
    },
    forget: (client) => void slow.delete(client),
  }
}
