import type pg from 'pg'
import type { Index } from '#databases/catalogue.ts'
import { bind, draft } from '#databases/draft.ts'
import type { Driver } from '#databases/drivers/driver.ts'
import { planner } from '#databases/drivers/planner.ts'
import { countRows, selectRows, writeRows } from '#databases/drivers/postgres/answers.ts'
import { callFunction } from '#databases/drivers/postgres/call.ts'
import { buildCatalogue, type CatalogueRow, catalogueSql } from '#databases/drivers/postgres/catalogue.ts'
import { connect } from '#databases/drivers/postgres/connect.ts'
import type { RowClient } from '#databases/drivers/postgres/connection.ts'
import { failureOf } from '#databases/drivers/postgres/errors.ts'
import { hold } from '#databases/drivers/postgres/hold.ts'
import { indexesSql } from '#databases/drivers/postgres/indexes.ts'
import { isolated } from '#databases/drivers/postgres/isolated.ts'
import { keptAnswers } from '#databases/drivers/postgres/kept-answers.ts'
import { pool as poolOf } from '#databases/drivers/postgres/pool.ts'
import { codeOf } from '#databases/drivers/postgres/query.ts'
import { runSql } from '#databases/drivers/postgres/raw.ts'
import { type RoleFacts, roleSql, unsafe } from '#databases/drivers/postgres/role.ts'
import { runner } from '#databases/drivers/postgres/runner.ts'
import { structure } from '#databases/drivers/structure.ts'
import type { Failure } from '#kernel/errors.ts'

export type PostgresOptions = {
  /** A connection string, or what pg takes (the embedded server's socket). */
  readonly url: string | pg.ClientConfig
  readonly maxConnections: number
  /** Milliseconds, as all of these. */
  readonly connectTimeout: number
  readonly statementTimeout: number
  readonly idleTimeout: number
  readonly applicationName: string
  readonly readOnly?: boolean
  /** Rows that the answer of an update or delete holds at most (`gateway.max_rows`). */
  readonly maxRows: number
  /** The client is named in `gateway.unsafe_clients`. */
  readonly allowServerRights?: boolean
}

export type PostgresDriver = Driver & {
  readonly name: 'postgresql'
}

export function postgresDriver(options: PostgresOptions): PostgresDriver {
  const vet = vetting(options.allowServerRights ?? false)
  const pool = poolOf({ ...options, connect: () => vet(() => connect(options)) })
  const run = runner(pool)
  // SQL and functions apart, so that long reports do not keep functions waiting.
  const [ofSql, ofCalls] = [ownPool(), ownPool()]
  const alone = isolated(ofSql, options.statementTimeout, terminate)
  const aloneForCalls = isolated(ofCalls, options.statementTimeout, terminate)
  const tables = structure(async () => buildCatalogue((await run.value(draft(catalogueSql))) as CatalogueRow)) // as the statement builds it
  const { plan, attempt } = planner(tables, ({ cause }) => moved.has(codeOf(cause)))

  async function apply(statements: readonly string[]): Promise<void> {
    const client = await pool.acquire()
    try {
      await client.query('begin')
      for (const statement of statements) await client.query(statement)
      await client.query('commit')
    } catch (error) {
      // When even this fails the connection is not clean, and the pool ends it.
      if (client.isAlive()) await client.query('rollback').catch(() => {})
      throw failureOf(error)
    } finally {
      pool.release(client)
      tables.invalidate()
    }
  }

  function ownPool() {
    const maxConnections = ownConnections
    return poolOf({ ...options, maxConnections, connect: () => vet(() => connect(options)) })
  }

  async function terminate(processId: number): Promise<void> {
    const sql = draft('')
    sql.text = `select pg_terminate_backend(${bind(sql, String(processId))})`
    await run.finish({ sql })
  }

  async function probe(): Promise<string> {
    const client = await pool.acquire()
    try {
      await client.query('select 1')
      return client.reported.server_version?.split(' ')[0] ?? 'unknown'
    } catch (error) {
      throw failureOf(error)
    } finally {
      pool.release(client)
    }
  }

  return {
    name: 'postgresql',
    plan,
    select: (planned, on) => attempt(planned, (plan) => selectRows(run, plan, on), on !== undefined),
    count: (planned, on) => attempt(planned, (plan) => countRows(run, plan, plan.mode, on), on !== undefined),
    insert: (planned, on) =>
      attempt(planned, (plan) => writeRows(run, plan, options.maxRows, on), on !== undefined),
    update: (planned, on) =>
      attempt(planned, (plan) => writeRows(run, plan, options.maxRows, on), on !== undefined),
    delete: (planned, on) =>
      attempt(planned, (plan) => writeRows(run, plan, options.maxRows, on), on !== undefined),
    async sql(request) {
      const answer = await runSql(alone, request)
      if (!request.readOnly && structural.test(request.text)) tables.invalidate()
      return answer
    },
    hold: (work, how) => hold(pool, work, { ...how, timeout: options.statementTimeout + 5_000 }),
    kept: keptAnswers(run, apply),
    call: (request) => callFunction(run, aloneForCalls, request),
    run: apply,
    catalogue: tables.fresh,
    indexes: async () => (await run.value(draft(indexesSql))) as readonly Index[], // as the statement builds it
    invalidate: tables.invalidate,
    probe,
    stats: pool.stats,
    close: async () => void (await Promise.all([pool.close(), ofSql.close(), ofCalls.close()])),
  }
}

/** For callers' own SQL (gateway.md 6), and as many for functions. */
const ownConnections = 4

/** Words that stand in a text after which tables may look otherwise. */
const structural = /\b(?:create|alter|drop|do|call|into)\b/i

/** undefined_column, undefined_table: a name of the catalogue is gone. */
const moved = new Set(['42703', '42P01'])

const vettedFor = 60_000

/** Looks at the role behind a new connection, at most every 60 s; a refusal holds as long without connecting again. */
function vetting(allowServerRights: boolean): (open: () => Promise<RowClient>) => Promise<RowClient> {
  let verdict: { readonly at: number; readonly refusal: Failure | undefined } | undefined
  return async (open) => {
    const valid = verdict && performance.now() - verdict.at < vettedFor ? verdict : undefined
    if (valid?.refusal) throw valid.refusal
    const client = await open()
    if (valid) return client
    const refusal = await refusalOf(client, allowServerRights)
    verdict = { at: performance.now(), refusal }
    if (refusal === undefined) return client
    client.destroy()
    throw refusal
  }
}

async function refusalOf(client: RowClient, allowServerRights: boolean): Promise<Failure | undefined> {
  try {
    const { rows } = await client.query<{ role: RoleFacts }>(roleSql)
    return rows[0] && unsafe(rows[0].role, allowServerRights)
  } catch (error) {
    client.destroy()
    throw failureOf(error)
  }
}
