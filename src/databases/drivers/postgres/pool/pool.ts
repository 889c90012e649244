import { type CircuitState, createCircuitBreaker } from '#databases/drivers/circuit-breaker.ts'
import type { Presence } from '#databases/drivers/driver.ts'
import type { MemoryBudget } from '#databases/drivers/memory-budget.ts'
import { resetSession } from '#databases/drivers/postgres/pool/reset-session.ts'
import type { RowClient, Terminate } from '#databases/drivers/postgres/protocol/connection.ts'
import { callerLeft } from '#databases/drivers/presence.ts'
import { fail } from '#databases/failures.ts'
import { Failure } from '#kernel/errors.ts'

export type PoolOptions = {
  /** Makes one connected client, or throws a Failure. */
  readonly connect: () => Promise<RowClient>
  readonly terminate: Terminate
  readonly maxConnections: number
  /** Callers above this fail at once instead of piling up behind a slow database. */
  readonly maxWaiting: number
  /** Also how long a caller waits for a free connection. Milliseconds, as all of these. */
  readonly connectTimeout: number
  /** The server ends a statement by itself then; a connection that is still silent 5 s later is broken off here. */
  readonly statementTimeout: number
  readonly idleTimeout: number
  /** Memory for answers that are read to their end though their readers are slow. */
  readonly readAhead: () => MemoryBudget
}

export type Pool = {
  /** For who waits for what runs there: they are in no queue, and nothing runs for them, once they have left. */
  acquire(presence?: Presence): Promise<RowClient>
  /** A connection that is there and that nobody uses or waits for. */
  takeIdle(presence?: Presence): RowClient | undefined
  /** Whether those who find no connection wait for one; else they are refused at once. */
  mayWait(): boolean
  isWaitedFor(): boolean
  /** Less connections than there may be. */
  mayOpen(): boolean
  /** Gives a connection back; one that is not clean (a transaction, a lost socket) is destroyed instead. */
  release(client: RowClient): void
  stats(): { total: number; idle: number; waiting: number; circuit: CircuitState }
  close(): Promise<void>
}

type Waiter = {
  readonly resolve: (client: RowClient) => void
  readonly reject: (error: unknown) => void
  readonly deadline: number
  readonly presence: Presence | undefined
}

/** How long a connection may be silent after its statement should have ended, and a statement after it was cancelled. */
const GRACE = 5_000
const CANCEL_GRACE = 1_000
/** How often the connections are looked at. */
const TICK = 100
/** A reader who keeps a connection waiting for longer is a slow one. */
const SLOW_READER = 200

/** Connections of one client: opened when needed, the one used last is used next, so that the others can go. */
export function createPool(options: PoolOptions): Pool {
  const { terminate } = options
  const all = new Set<RowClient>()
  const idle: RowClient[] = []
  const waiters: Waiter[] = []
  const breaker = createCircuitBreaker(() => performance.now())
  /** Connections that wait for slow readers. More than half of the pool never do: further answers are read to their end. */
  const slow = new Set<RowClient>()
  const half = Math.floor(options.maxConnections / 2)
  let opening = 0
  let closed = false
  let sweeper: NodeJS.Timeout | undefined

  async function acquire(presence?: Presence): Promise<RowClient> {
    if (closed) throw fail('client_unavailable')
    const client = takeIdle(presence)
    if (client !== undefined) return client
    if (mayOpen()) return take(await open(), presence)
    return wait(presence)
  }

  function takeIdle(presence?: Presence): RowClient | undefined {
    for (let client = idle.pop(); client; client = idle.pop()) {
      if (client.isAlive()) return take(client, presence)
      drop(client)
    }
    return undefined
  }

  const mayOpen = () => all.size + opening < options.maxConnections

  function take(client: RowClient, presence: Presence | undefined): RowClient {
    client.since = performance.now()
    client.presence = presence
    return client
  }

  async function open(): Promise<RowClient> {
    if (!breaker.allows()) throw breaker.refusal()
    opening++
    try {
      const client = await options.connect()
      breaker.succeeded()
      adopt(client)
      return client
    } catch (error) {
      // While others work, or the role is refused, the database is there: it is only this connection that it did not give.
      const down = all.size === 0 && !(error instanceof Failure && REFUSALS.has(error.code))
      if (down) breaker.failed()
      else breaker.succeeded()
      // With no connection left nobody would wake those who wait.
      if (all.size === 0)
        for (const waiter of waiters.splice(0)) waiter.reject(down ? breaker.refusal() : error)
      throw error
    } finally {
      opening--
    }
  }

  function adopt(client: RowClient): void {
    all.add(client)
    client.once('end', () => drop(client))
    sweeper ??= setInterval(watch, TICK).unref()
    if (closed) client.destroy()
  }

  function drop(client: RowClient): void {
    if (!all.delete(client)) return
    slow.delete(client)
    const index = idle.indexOf(client)
    if (index >= 0) idle.splice(index, 1)
    client.destroy()
    // Somebody waits for the place that has become free.
    if (waiters.length > 0 && mayOpen()) open().then(hand, () => {})
  }

  function wait(presence: Presence | undefined): Promise<RowClient> {
    if (waiters.length >= options.maxWaiting) throw fail('client_busy')
    return new Promise((resolve, reject) => {
      waiters.push({ resolve, reject, deadline: performance.now() + options.connectTimeout, presence })
    })
  }

  function hand(client: RowClient): void {
    dismissLeft()
    const waiter = waiters.shift()
    take(client, waiter?.presence)
    if (waiter) waiter.resolve(client)
    else idle.push(client)
  }

  function release(client: RowClient): void {
    if (!all.has(client)) return
    slow.delete(client)
    if (closed || !client.isClean()) drop(client)
    else if (client.mayBeMarked || (client.pooled === undefined && client.hasDrifted()))
      resetSession(client, GRACE).then(() => giveBack(client))
    else hand(client)
  }

  function giveBack(client: RowClient): void {
    if (!all.has(client)) return
    if (closed || !client.isClean()) drop(client)
    else hand(client)
  }

  /** Ends what has been idle for long, silent for too long, waited for in vain, or left by its caller. */
  function watch(): void {
    const now = performance.now()
    for (const client of all) {
      if (client.isBusy()) watchBusy(client, now)
      else if (idle.includes(client) && now - client.since > options.idleTimeout) retire(client)
    }
    dismissLeft()
    // Not to the tenth of a second: under load one is free a little later.
    while (waiters[0] && waiters[0].deadline + 500 < now) waiters.shift()?.reject(fail('client_busy'))
    if (all.size === 0 && waiters.length === 0) stopWatching()
  }

  function watchBusy(client: RowClient, now: number): void {
    const late = now - client.since - options.statementTimeout
    if (client.isLeft()) client.stop({ grace: CANCEL_GRACE, terminate })
    else if (client.pausedSince !== undefined) watchReader(client, now - client.pausedSince)
    else if (late > GRACE) breakOff(client)
    else if (late > 0 && client.active?.isLong) client.stop({ grace: GRACE, terminate })
  }

  /** One that was silent for too long is rarely alone: the network has forgotten those that wait here as well. */
  function breakOff(client: RowClient): void {
    client.destroy()
    for (const other of [...idle]) drop(other)
  }

  function watchReader(client: RowClient, paused: number): void {
    if (paused < SLOW_READER || slow.has(client)) return
    if (slow.size < half) slow.add(client)
    else client.active?.readAhead?.(options.readAhead())
  }

  function dismissLeft(): void {
    for (let at = waiters.length - 1; at >= 0; at--)
      if (waiters[at]?.presence?.hasLeft()) waiters.splice(at, 1)[0]?.reject(callerLeft())
  }

  function stopWatching(): void {
    clearInterval(sweeper)
    sweeper = undefined
  }

  function retire(client: RowClient): void {
    all.delete(client)
    const index = idle.indexOf(client)
    if (index >= 0) idle.splice(index, 1)
    void client.end()
  }

  async function close(): Promise<void> {
    closed = true
    for (const waiter of waiters.splice(0)) waiter.reject(fail('client_unavailable'))
    const ending = idle.splice(0).map((client) => client.end())
    await Promise.all(ending)
  }

  const stats = () => ({
    total: all.size + opening,
    idle: idle.length,
    waiting: waiters.length,
    circuit: breaker.state(),
  })
  const mayWait = () => !closed && options.maxWaiting > 0
  const isWaitedFor = () => waiters.length > 0
  return { acquire, takeIdle, mayWait, isWaitedFor, mayOpen, release, stats, close }
}

/** A connection was there, and what was found behind it is not to be used. */
const REFUSALS = new Set(['unsafe_client', 'roles_unavailable'])
