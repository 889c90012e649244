import { isDeepStrictEqual } from 'node:util'
import { createPool, type Pool, type PoolOptions } from '#databases/drivers/postgres/pool/pool.ts'
import { type ConnectOptions, createConnector, within } from '#databases/drivers/postgres/protocol/connect.ts'
import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import { connectFailure } from '#databases/drivers/postgres/protocol/errors.ts'
import type { RoleCheck } from '#databases/drivers/postgres/roles/role-check.ts'
import { fail } from '#databases/failures.ts'
import { databaseIdentity } from '#kernel/db/database-identity.ts'
import { isServer } from '#kernel/db/pooler.ts'

/** Connections for work that needs a session of its own: management, and what backups find out before they begin. */
type DirectConnections = {
  readonly pool: Pool
  /** Throws if only a pooler is reached. */
  requireSession(): Promise<void>
  close(): Promise<void>
}

type DirectConnectionOptions = Omit<PoolOptions, 'connect' | 'maxConnections'> &
  ConnectOptions & {
    /** The client, for messages. */
    readonly name: string
    readonly checkRole: RoleCheck
    /** The database's identity and the answer to `REACHED_SQL`, at the client's own address. */
    readonly reached: () => Promise<unknown>
  }

const MAX_CONNECTIONS = 4

/** Undefined `direct`: the client's own address is also the direct one, and its own pool is used. */
export function createDirectConnections(
  direct: string | undefined,
  pooled: Pool,
  options: DirectConnectionOptions,
): DirectConnections {
  if (direct === undefined)
    return {
      pool: pooled,
      requireSession: () => requireServer(pooled, () => missing(options)),
      close: async () => {},
    }
  const open = createConnector({ ...options, url: direct })
  const pool = createPool({
    ...options,
    maxConnections: MAX_CONNECTIONS,
    connect: async () => requireSameDatabase(await options.checkRole(open), options),
  })
  return {
    pool,
    requireSession: () => requireServer(pool, () => unusable(options, 'leads to a pooler')),
    close: pool.close,
  }
}

const settingOf = ({ name }: Pick<DirectConnectionOptions, 'name'>): string =>
  `clients.${name}.direct_url (of a registered client its direct_url) to PostgreSQL's own address`

const missing = ({ name }: Pick<DirectConnectionOptions, 'name'>) =>
  fail('direct_url_missing', {
    message: `A pooler answers at the address of client ${name}, and this needs a session of its own: set ${settingOf({ name })}`,
  })

const unusable = ({ name }: Pick<DirectConnectionOptions, 'name'>, why: string) =>
  fail('direct_url_unusable', {
    message: `The direct_url of client ${name} ${why}`,
    hint: `Set ${settingOf({ name })}, for the same database and role as url.`,
  })

async function requireServer(pool: Pool, refusal: () => Error): Promise<void> {
  const client = await pool.acquire()
  try {
    if (client.pooled !== undefined || !(await isServer(client))) throw refusal()
  } finally {
    pool.release(client)
  }
}

/** A direct connection to another database or role would change or restore the wrong tables, or give new ones another owner. */
async function requireSameDatabase(client: RowClient, options: DirectConnectionOptions): Promise<RowClient> {
  try {
    if (client.pooled !== undefined) throw unusable(options, 'leads to a pooler')
    const reached = await options.reached()
    const here = await within(options.connectTimeout, client, () => reachedBy(client))
    if (!isDeepStrictEqual(here, reached))
      throw unusable(options, 'leads to another database, or to another role, than its url')
    return client
  } catch (error) {
    client.destroy()
    throw connectFailure(error)
  }
}

async function reachedBy(client: RowClient): Promise<readonly unknown[]> {
  const identity = await databaseIdentity(client)
  const { rows } = await client.query<{ reached: unknown }>(REACHED_SQL)
  return [identity, rows[0]?.reached]
}

/** Also for a role that may not ask for the identity. */
export const REACHED_SQL = `select pg_catalog.json_build_array(session_user, d.oid, d.datname) as reached
  from pg_catalog.pg_database as d where d.datname operator(pg_catalog.=) pg_catalog.current_database()`
