import type pg from 'pg'

/** Where the control database is, and who could do everything to it: for clients that are on the same server. */
export type ControlServer = {
  /** When the server was started, to the microsecond: no two servers say the same. */
  readonly startedAt: string
  /** Our login, and the owner of the database. */
  readonly roles: readonly string[]
}

/** Asked each time, since a restart changes it; while the control database does not answer, as it was known last. */
export function createControlServerLookup(
  pool: Pick<pg.Pool, 'query'>,
): () => Promise<ControlServer | undefined> {
  let known: ControlServer | undefined
  const ask = async () => {
    known = (await pool.query<ControlServer>(SERVER)).rows[0]
    return known
  }
  return async () => {
    const late = Promise.withResolvers<ControlServer | undefined>()
    const timer = setTimeout(() => late.resolve(known), PATIENCE)
    try {
      return await Promise.race([ask().catch(() => known), late.promise])
    } finally {
      clearTimeout(timer)
    }
  }
}

/** Milliseconds. */
const PATIENCE = 2_000

const SERVER = `select extract(epoch from pg_postmaster_start_time())::text as "startedAt",
  array(
    select rolname::text from pg_roles
    where rolname = session_user or oid = (select datdba from pg_database where datname = current_database())
  ) as roles`
