import pg from 'pg'
import { edge, retryAfter } from '../http/failures.ts'
import type { Alarm } from './connection-alarm.ts'
import { Abandoned, GuardedClient } from './guarded-client.ts'
import { type PoolAddress, pooledSession } from './session-settings.ts'

export type PoolOptions = PoolAddress & {
  /** In pg_stat_activity, after `gatehouse`. */
  readonly name: string
  readonly max: number
  /** Callers that may wait for a connection; beyond it 503 at once. */
  readonly maxWaiting: number
  /** Milliseconds; then the server cancels a statement. One that is unanswered for GRACE longer ends here, with its connection. */
  readonly statementTimeout: number
  /** Called when an idle connection broke, or a connection was silent for too long. It is replaced; the error is for the log. */
  readonly onError: (error: Error) => void
  /** Shared by all connections to the same database. */
  readonly alarm: Alarm
}

/** Time after `statementTimeout` in which a statement may be unanswered, milliseconds. */
export const GRACE = 2_000

/** A pool whose lost connections do not end the process, whose statements all end, and for which a bounded number of callers waits. */
export function createPool(options: PoolOptions): pg.Pool {
  const { name, max, maxWaiting, statementTimeout, onError } = options
  const config = {
    ...pooledSession(options, statementTimeout),
    // pg-pool hands its options to the constructor, which its types do not say.
    Client: GuardedClient as unknown as new () => GuardedClient,
    max,
    application_name: name === '' ? 'gatehouse' : `gatehouse ${name}`,
    deadline: statementTimeout + GRACE,
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 60_000,
  }
  const pool = new pg.Pool(config)
  // Connections are abandoned after an alarm, which has reported its cause.
  pool.on('error', (error) => error instanceof Abandoned || onError(error))
  endTogether(pool, options)
  boundWaiting(pool, maxWaiting)
  return pool
}

function endTogether(pool: pg.Pool, { alarm, onError }: PoolOptions): void {
  const clients = new Set<GuardedClient>()
  const raise = (why: string) => {
    onError(new Error(why))
    alarm.raise()
  }
  alarm.subscribe(() => {
    for (const client of clients) client.suspect()
  })
  pool.on('connect', (client) => {
    // The pool makes no others.
    const guarded = client as pg.PoolClient & GuardedClient
    clients.add(guarded)
    guarded.once('end', () => clients.delete(guarded))
    guarded.once('silent', () => raise('A statement was not answered in time'))
    const connection = guarded.connection as unknown as ErrorEmitter
    connection.on('errorMessage', ({ code }) => {
      if (code !== READ_ONLY) return
      guarded.destroy()
      raise('The database takes no writes')
    })
  })
}

/** read_only_sql_transaction: after a failover the old primary still answers. */
const READ_ONLY = '25006'

/** Not in pg's types. */
type ErrorEmitter = {
  on(event: 'errorMessage', listener: (message: { readonly code: string | undefined }) => void): void
}

/** `pool.query` also calls `connect`. */
function boundWaiting(pool: pg.Pool, maxWaiting: number): void {
  const connect = pool.connect.bind(pool) as Connect
  const bounded: Connect = (done) => {
    if (pool.waitingCount < maxWaiting) return connect(done)
    if (done === undefined) return Promise.reject(tooManyWait())
    done(tooManyWait(), undefined, () => {})
    return undefined
  }
  // Both overloads.
  pool.connect = bounded as pg.Pool['connect']
}

type Connect = (
  done?: (error: Error | undefined, client: pg.PoolClient | undefined, release: () => void) => void,
) => Promise<pg.PoolClient> | undefined

/** The failure of a caller beyond `maxWaiting`. */
export const tooManyWait = () =>
  edge('service_unavailable', {
    message: 'Too many requests wait for the database; try again in a moment',
    headers: retryAfter(1),
  })
