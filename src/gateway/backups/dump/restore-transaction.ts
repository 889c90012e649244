import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { announceRestore } from '#databases/clients/restoring.ts'
import { onConnection } from '#kernel/db/guarded-client.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { dropFormerState } from '../former-state.ts'
import { setTransaction } from '../jobs/store.ts'
import type { Source } from '../sources.ts'
import type { RunningProgram } from './run-program.ts'

/** How the transaction of a restore has ended. */
type Outcome = 'committed' | 'aborted' | 'in progress' | 'unknown'

/** `transaction_id` of a restore whose transaction was not found. */
const UNKNOWN = 'unknown'
/** Time for pg_restore to open its connection, milliseconds. With a dump of an empty database it opens none before its input ends. */
const CONNECT_MS = 5_000
const CHECK_MS = 10_000

/** Name of the connection of a restore, at most 63 characters. */
export const connectionName = (job: string): string => `gatehouse backup ${job}`

/** A connection of the server: process ids are used again. */
type Session = { readonly pid: number; readonly since: string }

/**
 * The session of pg_restore, looked for from its start on. Callers with SQL have the same role, so they may see the name, take it for a session
 * of theirs and end that of pg_restore. Undefined if the program has ended, or if there are several.
 */
export function findSession(
  url: string,
  name: string,
  { stdin }: RunningProgram,
): Promise<Session | undefined> {
  const finding = onConnection({ url, name: 'backup', deadline: CHECK_MS }, async (client) => {
    while (!stdin.destroyed) {
      const { rows } = await client.query<Session>(SESSIONS, [name])
      if (rows.length > 0) return rows.length === 1 ? rows[0] : undefined
      await sleep(25)
    }
    return undefined
  })
  // The job does not fail for it: how its transaction ends is then unknown.
  return finding.catch(() => undefined)
}

const SESSIONS = `
  select pid, backend_start::text as since from pg_stat_activity where application_name = $1 and datname = current_database()`

/** Writes the transaction of pg_restore into the row of its job, before the program can commit. Undefined if the program has ended. */
export async function noteTransaction(
  { db }: Pick<Kernel, 'db'>,
  job: string,
  url: string,
  { program, session }: { readonly program: RunningProgram; readonly session: Promise<Session | undefined> },
): Promise<string | undefined> {
  const restoring = await Promise.race([session, sleep(CONNECT_MS)])
  const found =
    restoring &&
    (await onConnection({ url, name: 'backup', deadline: CHECK_MS }, (client) =>
      findTransaction(client, restoring, program),
    ))
  if (program.stdin.destroyed) return undefined
  const transaction = found ?? UNKNOWN
  await setTransaction(db, job, transaction)
  return transaction
}

/** The server assigns it with the first change, which may wait for locks. */
async function findTransaction(
  client: pg.Client,
  { pid, since }: Session,
  { stdin }: RunningProgram,
): Promise<string | undefined> {
  for (let wait = 10; !stdin.destroyed; wait = Math.min(wait * 2, 500)) {
    const { rows } = await client.query<{ transaction: string | null }>(TRANSACTION, [pid, since])
    const [backend] = rows
    if (backend === undefined) return undefined
    if (backend.transaction !== null) return backend.transaction
    await sleep(wait)
  }
  return undefined
}

/** The 32 bits of `backend_xid` with the epoch of the next transaction, from which it differs by less than 2^31. */
const TRANSACTION = `
  select (next + (((backend_xid::text::bigint - next) + 2147483648) & 4294967295) - 2147483648)::text as transaction
    from pg_stat_activity, txid_snapshot_xmax(txid_current_snapshot()) as next
   where pid = $1 and backend_start = $2::timestamptz`

/** Throws if the database does not answer. */
export async function outcomeOf(url: string, transaction: string): Promise<Outcome> {
  if (transaction === UNKNOWN) return 'unknown'
  return onConnection({ url, name: 'backup', deadline: CHECK_MS }, async (client) => {
    try {
      const { rows } = await client.query<{ status: Outcome | null }>(STATUS, [transaction])
      // Null for one that is too old.
      return rows[0]?.status ?? 'unknown'
    } catch (error) {
      if (error instanceof pg.DatabaseError && error.code === IN_THE_FUTURE) return 'unknown'
      throw error
    }
  })
}

/** By the older name, which servers before PostgreSQL 13 have too. */
const STATUS = 'select txid_status($1::bigint) as status'
/** invalid_parameter_value: the database is another one than that of the restore. */
const IN_THE_FUTURE = '22023'

/** The outcome when the program has ended, which may have been interrupted while the server committed. */
export async function endedOutcome(url: string, transaction: string): Promise<Outcome> {
  for (let tries = 0; tries < 50; tries++) {
    const outcome = await outcomeOf(url, transaction).catch(() => 'unknown' as const)
    if (outcome !== 'in progress') return outcome
    await sleep(100)
  }
  return 'unknown'
}

/** After the commit: keys whose answers may not be true any more, positions of live rows, and what processes have cached. */
export async function forgetFormerState(
  kernel: Kernel,
  { url, client }: Pick<Extract<Source, { format: 'dump' }>, 'url' | 'client'>,
): Promise<void> {
  try {
    await onConnection({ url, name: 'backup', deadline: 60_000 }, dropFormerState)
  } finally {
    await announceRestore(kernel, client)
  }
}
