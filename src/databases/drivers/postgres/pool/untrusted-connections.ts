import type { Presence } from '#databases/drivers/driver.ts'
import type { Pool } from '#databases/drivers/postgres/pool/pool.ts'
import { isFresh } from '#databases/drivers/postgres/pool/reset-session.ts'
import { cancel, keysOf } from '#databases/drivers/postgres/protocol/cancel.ts'
import type { RowClient, Terminate } from '#databases/drivers/postgres/protocol/connection.ts'
import { beginPooled, cleanPooled } from '#databases/drivers/postgres/protocol/pooler.ts'
import { fail } from '#databases/failures.ts'

/** Runs the work on an exclusive connection and resets its session before the next caller has it. */
export type RunUntrusted = <T>(presence: Presence, work: (client: RowClient) => Promise<T>) => Promise<T>

/** How long a cancelled statement may take to end; a statement that catches the cancelling is ended with its connection. */
const GRACE = 1_000

/**
 * For callers' own SQL and functions, which may leave settings, roles, temporary tables, locks and prepared statements in the session. The
 * gateway enforces the time limit, since a statement can change the server's own.
 */
export function createUntrustedConnections(pool: Pool, limit: number, terminate: Terminate): RunUntrusted {
  return async (presence, work) => {
    const signal = presence.signal()
    const client = await pool.acquire(presence)
    // This function handles a caller who leaves, because it can also terminate the backend.
    client.presence = undefined
    // With a pooler it is known once the transaction has a session.
    let { processID: processId } = keysOf(client)
    let stopped: 'late' | 'left' | undefined
    let last: NodeJS.Timeout | undefined
    const stop = (why: 'late' | 'left') => {
      stopped ??= why
      cancel(client)
      last ??= setTimeout(() => {
        client.destroy()
        // The backend of a closed connection continues until it next writes.
        terminate(processId)
      }, GRACE)
    }
    const leave = () => stop('left')
    const timer = setTimeout(() => stop('late'), limit)
    signal.addEventListener('abort', leave, { once: true })
    try {
      if (signal.aborted) throw new Error('The caller has left')
      if (client.pooled !== undefined) processId = await beginPooled(client)
      return await work(client)
    } catch (error) {
      if (stopped === undefined && !signal.aborted) throw error
      throw fail('statement_timeout', { hint: 'The statement was cancelled and what it did is undone.' })
    } finally {
      clearTimeout(timer)
      clearTimeout(last)
      signal.removeEventListener('abort', leave)
      // A cancel request on the way must not hit the next caller's statement.
      if (stopped !== undefined) client.destroy()
      // Before the answer, so that the caller's next request, on any connection, meets no lock or open cursor of this one.
      await clean(client)
      pool.release(client)
    }
  }
}

/** The pool ends a connection that is not clean. */
async function clean(client: RowClient): Promise<void> {
  // A reset without an answer must not occupy a connection forever.
  const timer = setTimeout(() => client.destroy(), 5 * GRACE)
  try {
    if (client.active !== undefined || !client.isAlive()) return client.destroy()
    if (client.pooled !== undefined) return await cleanPooled(client)
    if (client.getTransactionStatus() !== 'I') await client.query('rollback')
    await client.query('discard all')
    if (!isFresh(client)) client.destroy()
  } catch {
    client.destroy()
  } finally {
    clearTimeout(timer)
  }
}
