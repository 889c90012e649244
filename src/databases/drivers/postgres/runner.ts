import type { OpenTransaction, Persona, Presence } from '#databases/drivers/driver.ts'
import type { Pool } from '#databases/drivers/postgres/pool/pool.ts'
import {
  createSharedConnections,
  type SharedConnection,
} from '#databases/drivers/postgres/pool/shared-connections.ts'
import { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import { type About, failureOf } from '#databases/drivers/postgres/protocol/errors.ts'
import { createNamer, type Namer } from '#databases/drivers/postgres/protocol/prepared-statements.ts'
import { codeOf, Displaced, STALE_CODES } from '#databases/drivers/postgres/protocol/query-errors.ts'
import type { WrittenValues } from '#databases/drivers/postgres/protocol/refused-column.ts'
import { RowQuery } from '#databases/drivers/postgres/protocol/row-query.ts'
import type { RunOptions } from '#databases/drivers/postgres/protocol/run-options.ts'
import {
  firstStatement,
  lacksOrganization,
  personaFailure,
  roleOf,
} from '#databases/drivers/postgres/roles/persona.ts'
import type { BuiltSql } from '#databases/drivers/postgres/sql/sql-builder.ts'
import { requirePresence } from '#databases/drivers/presence.ts'
import type { Column, Table } from '#databases/plan/catalogue.ts'

export type Job = {
  readonly sql: BuiltSql
  readonly table?: Table
  readonly written?: readonly Column[]
  readonly given?: WrittenValues['given']
  /** A read that is always short: it may share a connection. */
  readonly short?: boolean
  /** A statement of the gateway: it runs with the search path pg_catalog. */
  readonly isOwn?: boolean
  /** It may run user-defined functions: the session is reset before the next caller has the connection. */
  readonly runsCode?: boolean
  /** The caller that waits for it; in a transaction, the transaction has it. */
  readonly presence?: Presence | undefined
} & Partial<
  Pick<
    RunOptions,
    | 'stripNulls'
    | 'marksJsonNull'
    | 'isCsv'
    | 'limit'
    | 'highWater'
    | 'isLong'
    | 'maxBytes'
    | 'commitsLast'
    | 'relations'
  >
>

/** A statement whose rows are buffered or streaming; `release` gives the connection back, at once or after the last row. */
export type RunningStatement = {
  readonly query: RowQuery
  readonly release: () => void
  readonly explain: (error: unknown) => unknown
}

export type Runner = {
  /** Settles when all rows are buffered or at `highWater`. Throws a Failure. */
  start(job: Job, on?: OpenTransaction): Promise<RunningStatement>
  /** Runs to the end and frees the connection. */
  finish(job: Job, on?: OpenTransaction): Promise<RowQuery>
  /** Reads the only value of the only row, which is JSON. */
  value(sql: BuiltSql, table?: Table, on?: OpenTransaction, presence?: Presence): Promise<unknown>
  /** The same for a statement of the gateway, with the search path pg_catalog. */
  systemValue(sql: BuiltSql, presence?: Presence): Promise<unknown>
  /** A runner whose statements run as this persona, also in a transaction, where a function may have changed the role. */
  as(persona: Persona): Runner
}

export const createRunner = (pool: Pool, persona?: Persona): Runner =>
  runnerAs(persona, { pool, join: createSharedConnections(pool), nameOf: createNamer() })

type Resources = {
  readonly pool: Pool
  readonly join: ReturnType<typeof createSharedConnections>
  readonly nameOf: Namer
}

function runnerAs(persona: Persona | undefined, resources: Resources): Runner {
  const { pool, nameOf } = resources

  async function start(job: Job, on?: OpenTransaction): Promise<RunningStatement> {
    // Code may leave settings on the session, which must not meet another caller's statement: the session is reset in between.
    const mayShare = persona === undefined || job.runsCode !== true
    const joined = job.short && on === undefined && mayShare ? resources.join() : undefined
    if (joined === undefined) return startAlone(job, on)
    const connection = joined instanceof Promise ? await joined : joined
    return (await share(connection, job)) ?? startAlone(job)
  }

  /** Undefined when the read was displaced. */
  async function share(connection: SharedConnection, job: Job): Promise<RunningStatement | undefined> {
    const explain = (error: unknown) => failureOf(error, about(job, persona))
    if (job.runsCode) connection.client.mayBeDirty = true
    try {
      const name = nameOf(job.sql.text, job.sql.parameters, persona?.role)
      const how = { name, again: true, persona, following: true }
      const query = await run(connection.client, { ...job, highWater: Number.POSITIVE_INFINITY }, how)
      return { query, release: () => {}, explain }
    } catch (error) {
      if (error instanceof Displaced || connection.client.hasStaleFunction) return undefined
      throw explain(error)
    } finally {
      connection.leave()
    }
  }

  async function startAlone(job: Job, on?: OpenTransaction, attempt = 1): Promise<RunningStatement> {
    requirePresence(job.presence)
    // Only this driver makes connections of transactions, as RowClients.
    const client = on instanceof RowClient ? on : await pool.acquire(job.presence)
    client.since = performance.now()
    if (job.runsCode) client.mayBeDirty = true
    const release = on === undefined ? () => pool.release(client) : () => {}
    const explain = (error: unknown) => failureOf(error, about(job, persona))
    try {
      requirePresence(client.presence)
      const name = nameOf(job.sql.text, job.sql.parameters, persona?.role)
      const query = await run(client, job, { name, again: on === undefined, persona })
      return { query, release, explain }
    } catch (error) {
      release()
      // The statement had no effect. Other connections may be as stale.
      if (client.hasStaleFunction && on === undefined && attempt < ATTEMPTS)
        return startAlone(job, on, attempt + 1)
      throw explain(error)
    }
  }

  async function finish(job: Job, on?: OpenTransaction): Promise<RowQuery> {
    const { query, release } = await start(job, on)
    release()
    return query
  }

  async function value(
    sql: BuiltSql,
    table?: Table,
    on?: OpenTransaction,
    presence?: Presence,
  ): Promise<unknown> {
    const runsCode = table?.readRunsCode === true
    return soleValue(await finish({ sql, presence, runsCode, ...(table && { table }) }, on))
  }

  const systemValue = async (sql: BuiltSql, presence?: Presence) =>
    soleValue(await finish({ sql, presence, isOwn: true }))

  return { start, finish, value, systemValue, as: (other) => runnerAs(other, resources) }
}

/** Attempts of a statement whose connection has a stale function. */
const ATTEMPTS = 5

function soleValue({ writer }: RowQuery): unknown {
  const [row] = JSON.parse(Buffer.concat(writer?.take() ?? []).toString())
  return row === undefined ? undefined : Object.values(row)[0]
}

type How = {
  readonly name: string
  readonly again: boolean
  /** The role and claims of the statement. */
  readonly persona: Persona | undefined
  /** Pipelined after queries of others on the connection. */
  readonly following?: boolean
}

/**
 * Runs a statement on a connection. A stale prepared statement fails before it has any effect, so it is run once more unnamed, except in a
 * transaction, which the failure has ended.
 */
async function run(client: RowClient, job: Job, how: How): Promise<RowQuery> {
  const { again, persona, following } = how
  const { pooled } = client
  const name = pooled?.prepares === false ? '' : how.name
  const isLong = job.isLong === true
  const first = firstStatement(persona, {
    isLong,
    isPrepared: name !== '',
    isOwn: job.isOwn === true,
    settings: pooled?.settings,
  })
  const query = new RowQuery(client, job.sql, {
    name,
    isLong,
    first,
    presence: following ? job.presence : undefined,
    maxBytes: job.maxBytes,
    commitsLast: job.commitsLast ?? false,
    relations: job.relations,
    members: job.sql.members.length > 0 ? job.sql.members : undefined,
    stripNulls: job.stripNulls ?? false,
    marksJsonNull: job.marksJsonNull ?? false,
    isCsv: job.isCsv ?? false,
    limit: job.limit ?? Number.POSITIVE_INFINITY,
    highWater: job.highWater ?? Number.POSITIVE_INFINITY,
  })
  if (following) client.sendPipelined(query)
  else client.query(query)
  try {
    await query.ready
    return query
  } catch (error) {
    if (again && name !== '' && STALE_CODES.has(codeOf(error)))
      return run(client, job, { ...how, name: '', again: false })
    throw query.failedFirst ? personaFailure(error) : error
  }
}

const about = ({ sql, table, written = [], given = () => [] }: Job, persona: Persona | undefined): About => ({
  table,
  parameters: sql.parameters,
  termPositions: sql.termPositions,
  written,
  given,
  actsAs: persona && roleOf(persona),
  lacksOrganization: persona && lacksOrganization(persona),
})
