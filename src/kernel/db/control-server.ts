import type pg from 'pg'
import { withTimeout } from '../timeout.ts'

/** The server of the control database, and the roles that own the database; for checks of clients on the same server. */
export type ControlServer = {
  /** The start of the server, to the microsecond, which identifies it. */
  readonly startedAt: string
  /** Our login, and the owner of the database. */
  readonly roles: readonly string[]
}

/** Reads it for each call, since a restart changes it. While the control database does not answer, returns the last result. */
export function createControlServerLookup(
  pool: Pick<pg.Pool, 'query'>,
): () => Promise<ControlServer | undefined> {
  let known: ControlServer | undefined
  const ask = async () => {
    known = (await pool.query<ControlServer>(SERVER)).rows[0]
    return known
  }
  return () =>
    withTimeout(
      ask().catch(() => known),
      PATIENCE,
      () => known,
    )
}

/** Milliseconds. */
const PATIENCE = 2_000

const SERVER = `select extract(epoch from pg_postmaster_start_time())::text as "startedAt",
  array(
    select rolname::text from pg_roles
    where rolname = session_user or oid = (select datdba from pg_database where datname = current_database())
  ) as roles`
