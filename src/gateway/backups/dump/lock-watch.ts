import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { onConnection } from '#kernel/db/guarded-client.ts'
import { ProgramError } from './run-program.ts'

type LockWait = {
  readonly url: string
  /** Of the connection that may wait. */
  readonly name: string
  /** Milliseconds of waiting in all. */
  readonly limit: number
  /** Ends the watch. */
  readonly signal: AbortSignal
}

/** Milliseconds. */
const LOOK_EVERY = 1_000

/**
 * Calls `end` when a connection has waited for locks of others for too long. pg_restore begins with `SET lock_timeout = 0`, so a setting of
 * ours would have no effect.
 */
export async function watchLocks(watched: LockWait, end: (reason: Error) => void): Promise<void> {
  const { url, limit, signal } = watched
  let waited = 0
  const look = async (client: pg.Client): Promise<void> => {
    for (let since = performance.now(); ; since = performance.now()) {
      await sleep(LOOK_EVERY, undefined, { signal })
      const holders = await holdersOf(client, watched)
      if (holders.length > 0) waited += performance.now() - since
      if (waited > limit) return end(waitedTooLong(limit, holders))
    }
  }
  while (!signal.aborted && waited <= limit) {
    // While the database does not answer, the program fails by itself.
    await onConnection({ url, name: 'backup' }, look).catch(() =>
      sleep(LOOK_EVERY, undefined, { signal }).catch(() => {}),
    )
  }
}

type Holder = { readonly pid: number; readonly name: string | null }

async function holdersOf(client: pg.Client, { name }: LockWait): Promise<readonly Holder[]> {
  const { rows } = await client.query<Holder>(HOLDERS, [name])
  return rows
}

/** A prepared transaction has the process id 0. */
const HOLDERS = `
  select blocker.pid, holder.application_name as name
    from pg_stat_activity as waiting cross join lateral unnest(pg_blocking_pids(waiting.pid)) as blocker (pid)
    left join pg_stat_activity as holder on holder.pid = blocker.pid
   where waiting.application_name = $1 and waiting.datname = current_database()
   limit 5`

function waitedTooLong(limit: number, holders: readonly Holder[]): ProgramError {
  const named = holders.map(({ pid, name }) => `${name || 'unnamed'}, process ${pid}`).join('; ')
  return new ProgramError(
    `The restore waited for ${limit / 1_000} seconds for locks of other sessions on the database (${named}). ` +
      'The data is as it was. End these sessions, or raise backups.lock_timeout.',
  )
}
