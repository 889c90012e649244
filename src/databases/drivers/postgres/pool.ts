import { type CircuitState, circuit } from '#databases/drivers/circuit.ts'
import type { RowClient } from '#databases/drivers/postgres/connection.ts'
import { fail } from '#databases/failures.ts'
import { Failure } from '#kernel/errors.ts'

export type PoolOptions = {
  /** Makes one connected client, or throws a Failure. */
  readonly connect: () => Promise<RowClient>
  readonly maxConnections: number
  /** Callers above this fail at once instead of piling up behind a slow database. */
  readonly maxWaiting: number
  /** Also how long a caller waits for a free connection. Milliseconds, as all of these. */
  readonly connectTimeout: number
  /** The server ends a statement by itself then; a connection that is still silent 5 s later is broken off here. */
  readonly statementTimeout: number
  readonly idleTimeout: number
}

export type Pool = {
  acquire(): Promise<RowClient>
  /** A connection that is there and that nobody uses or waits for. */
  takeIdle(): RowClient | undefined
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
}

const grace = 5_000

/** Connections of one client: opened when needed, the one used last is used next, so that the others can go. */
export function pool(options: PoolOptions): Pool {
  const all = new Set<RowClient>()
  const idle: RowClient[] = []
  const waiters: Waiter[] = []
  const breaker = circuit(() => performance.now())
  let opening = 0
  let closed = false
  let sweeper: NodeJS.Timeout | undefined

  async function acquire(): Promise<RowClient> {
    if (closed) throw fail('client_unavailable')
    const client = takeIdle()
    if (client !== undefined) return client
    if (mayOpen()) return take(await open())
    return wait()
  }

  function takeIdle(): RowClient | undefined {
    for (let client = idle.pop(); client; client = idle.pop()) {
      if (client.isAlive()) return take(client)
      drop(client)
    }
    return undefined
  }

  const mayOpen = () => all.size + opening < options.maxConnections

  function take(client: RowClient): RowClient {
    client.since = performance.now()
    return client
  }

  async function open(): Promise<RowClient> {
    if (!breaker.admits()) throw unavailable(breaker.wait())
    opening++
    try {
      const client = await options.connect()
      breaker.succeeded()
      admit(client)
      return client
    } catch (error) {
      // While others work, or the role is refused, the database is there: it is only this connection that it did not give.
      const down = all.size === 0 && !(error instanceof Failure && refusals.has(error.code))
      if (down) breaker.failed()
      else breaker.succeeded()
      // With no connection left nobody would wake those who wait.
      if (all.size === 0)
        for (const waiter of waiters.splice(0)) waiter.reject(down ? unavailable(breaker.wait()) : error)
      throw error
    } finally {
      opening--
    }
  }

  function admit(client: RowClient): void {
    all.add(client)
    client.once('end', () => drop(client))
    sweeper ??= setInterval(sweep, 1_000).unref()
    if (closed) client.destroy()
  }

  function drop(client: RowClient): void {
    if (!all.delete(client)) return
    const index = idle.indexOf(client)
    if (index >= 0) idle.splice(index, 1)
    client.destroy()
    // Somebody waits for the place that has become free.
    if (waiters.length > 0 && mayOpen()) open().then(hand, () => {})
  }

  function wait(): Promise<RowClient> {
    if (waiters.length >= options.maxWaiting) throw fail('client_busy')
    return new Promise((resolve, reject) => {
      waiters.push({ resolve, reject, deadline: performance.now() + options.connectTimeout })
    })
  }

  function hand(client: RowClient): void {
    const waiter = waiters.shift()
    client.since = performance.now()
    if (waiter) waiter.resolve(client)
    else idle.push(client)
  }

  function release(client: RowClient): void {
    if (!all.has(client)) return
    if (closed || !client.isClean()) drop(client)
    else hand(client)
  }

  /** Once a second: ends what has been idle for long, silent for too long, or waited for in vain. */
  function sweep(): void {
    const now = performance.now()
    for (const client of all) {
      const silent = client.isBusy() && now - client.since > options.statementTimeout + grace
      const unused = idle.includes(client) && now - client.since > options.idleTimeout
      if (silent) client.destroy()
      else if (unused) retire(client)
    }
    while (waiters[0] && waiters[0].deadline < now) waiters.shift()?.reject(fail('client_busy'))
    if (all.size === 0 && waiters.length === 0) stopSweeping()
  }

  function stopSweeping(): void {
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
const refusals = new Set(['unsafe_client', 'roles_unavailable'])

const unavailable = (wait: number) =>
  fail('client_unavailable', { headers: { 'retry-after': String(Math.max(1, Math.ceil(wait / 1_000))) } })
