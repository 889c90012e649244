import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { unlessAborted } from '../abort.ts'

class LockedError extends Error {}

export type Wait = {
  /** Called once when there is a wait: `wait for …`. */
  readonly report?: ((step: string) => void) | undefined
  /** Ends the wait. */
  readonly signal?: AbortSignal | undefined
  /** Longest wait, milliseconds. */
  readonly patience?: number | undefined
}

type Lock = {
  /** As in `wait for the migration lock`. */
  readonly name: string
  /** SQL for the number of the lock. */
  readonly key: string
}

/** Long enough for the work under these locks, short enough for a supervisor. */
const PATIENCE_MS = 120_000

const RETRY_MS = 200

/**
 * Takes an advisory lock that lasts until the connection ends. It tries repeatedly instead of waiting in the server, so that it can
 * report the wait and end it, and leaves nothing in the server's queue when it gives up.
 */
export async function takeSessionLock(client: pg.Client, lock: Lock, wait: Wait = {}): Promise<void> {
  const { report, signal, patience = PATIENCE_MS } = wait
  const since = performance.now()
  for (let round = 0; ; round++) {
    if (await unlessAborted(signal, tryLock(client, lock))) return
    if (performance.now() - since > patience) throw await heldTooLong(client, lock, patience)
    if (round === 0) report?.(`wait for the ${lock.name}`)
    await sleep(RETRY_MS, undefined, { signal }).catch(() => signal?.throwIfAborted())
  }
}

async function tryLock(client: pg.Client, { key }: Lock): Promise<boolean> {
  const { rows } = await client.query<{ taken: boolean }>(`select pg_try_advisory_lock(${key}) as taken`)
  return rows[0]?.taken === true
}

async function heldTooLong(client: pg.Client, { name, key }: Lock, patience: number): Promise<LockedError> {
  const { rows } = await client.query<{ pid: number }>(
    `select pid from pg_locks
      where locktype = 'advisory' and granted and database = (select oid from pg_database where datname = current_database())
        and objsubid = 1 and classid::bigint << 32 | objid::bigint = ${key}`,
  )
  const pid = rows[0]?.pid
  const holder = pid === undefined ? 'another session' : `another session (process ${pid} of the server)`
  return new LockedError(
    `Gave up after ${Math.round(patience / 1_000)} s: ${holder} holds the ${name}. ` +
      `Wait until it is done and start again; if it hangs, end it with: select pg_terminate_backend(${pid ?? 'PID'})`,
  )
}
