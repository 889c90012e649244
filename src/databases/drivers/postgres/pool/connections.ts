import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import { unavailable } from '#databases/drivers/unavailable.ts'
import { type CircuitState, createCircuitBreaker } from '#kernel/circuit-breaker.ts'
import { Failure } from '#kernel/errors.ts'

/** The connections of one pool. The idle connection that was used last is used next, so that the others can be closed. */
export type Connections = {
  /** There are fewer than there may be, counting those that are being opened. */
  mayOpen(): boolean
  /** Throws while the database is known to be down. */
  expectUp(): void
  open(): Promise<RowClient>
  /** The failure of callers who waited for the connection that could not be opened. */
  refusalAfter(error: unknown): unknown
  takeIdle(): RowClient | undefined
  makeIdle(client: RowClient): void
  isIdle(client: RowClient): boolean
  has(client: RowClient): boolean
  /** False: it was removed already. */
  remove(client: RowClient): boolean
  all(): Iterable<RowClient>
  idle(): readonly RowClient[]
  takeAllIdle(): readonly RowClient[]
  isEmpty(): boolean
  stats(): { total: number; idle: number; circuit: CircuitState }
}

export function createConnections(connect: () => Promise<RowClient>, max: number): Connections {
  const all = new Set<RowClient>()
  const idle: RowClient[] = []
  const breaker = createCircuitBreaker(() => performance.now(), unavailable)
  let opening = 0

  async function open(): Promise<RowClient> {
    opening++
    try {
      const client = await connect()
      breaker.succeeded()
      all.add(client)
      return client
    } catch (error) {
      judge(error)
      throw error
    } finally {
      opening--
    }
  }

  /** While other connections work, or the role is refused, the database is up: it only did not give this connection. */
  function judge(error: unknown): void {
    if (all.size > 0 || (error instanceof Failure && REFUSALS.has(error.code))) breaker.succeeded()
    else breaker.failed()
  }

  function remove(client: RowClient): boolean {
    const index = idle.indexOf(client)
    if (index >= 0) idle.splice(index, 1)
    return all.delete(client)
  }

  return {
    mayOpen: () => all.size + opening < max,
    expectUp() {
      if (!breaker.allows()) throw breaker.refusal()
    },
    open,
    refusalAfter: (error) => (breaker.state() === 'closed' ? error : breaker.refusal()),
    takeIdle: () => idle.pop(),
    makeIdle: (client) => void idle.push(client),
    isIdle: (client) => idle.includes(client),
    has: (client) => all.has(client),
    remove,
    all: () => all,
    idle: () => [...idle],
    takeAllIdle: () => idle.splice(0),
    isEmpty: () => all.size === 0,
    stats: () => ({ total: all.size + opening, idle: idle.length, circuit: breaker.state() }),
  }
}

/** The connection was opened, but its database must not be used. */
const REFUSALS = new Set(['unsafe_client', 'roles_unavailable', 'direct_url_unusable'])
