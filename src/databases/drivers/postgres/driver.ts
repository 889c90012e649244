import type pg from 'pg'
import type { Catalogue, Column } from '#databases/catalogue.ts'
import type { Driver, Held, RowsAnswer, WriteAnswer } from '#databases/drivers/driver.ts'
import { buildCatalogue, type CatalogueRow, catalogueSql } from '#databases/drivers/postgres/catalogue.ts'
import { connect } from '#databases/drivers/postgres/connect.ts'
import { failureOf } from '#databases/drivers/postgres/errors.ts'
import { pool as poolOf } from '#databases/drivers/postgres/pool.ts'
import { codeOf } from '#databases/drivers/postgres/query.ts'
import { type RoleFacts, refuseUnsafe, roleSql } from '#databases/drivers/postgres/role.ts'
import { type Job, type Running, runner, says } from '#databases/drivers/postgres/runner.ts'
import { structure } from '#databases/drivers/postgres/structure.ts'
import { insertSql } from '#databases/insert.ts'
import type {
  CountMode,
  CountPlan,
  DataRequest,
  InsertPlan,
  Plan,
  PlanOf,
  ReadPlan,
  UpdatePlan,
  WritePlan,
} from '#databases/plan.ts'
import { resolve } from '#databases/resolve.ts'
import { countSql, deleteSql, draft, explainSql, selectSql, updateSql } from '#databases/sql.ts'
import { touches } from '#databases/touches.ts'
import { Failure } from '#kernel/errors.ts'

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
  /** For the registration of a client; the driver itself refuses an unsafe role on every new pool (gateway.md 2). */
  inspectRole(): Promise<RoleFacts>
}

/** Answers above this many bytes are streamed; below it a failure in the middle still gets its own status. */
const highWater = 1_048_576
/** An estimate above this many rows is good enough for `count: estimated`; below it they are counted. */
const worthCounting = 10_000
const vettedFor = 60_000

export function postgresDriver(options: PostgresOptions): PostgresDriver {
  let vetted = Number.NEGATIVE_INFINITY
  const pool = poolOf({ ...options, connect: open })
  const run = runner(pool)
  const tables = structure(async () => buildCatalogue((await run.value(draft(catalogueSql))) as CatalogueRow)) // as the statement builds it

  /** The role is looked at with the first connection of a pool, at most every 60 s. */
  async function open() {
    const client = await connect(options)
    if (performance.now() - vetted < vettedFor) return client
    try {
      const { rows } = await client.query<{ role: RoleFacts }>(roleSql)
      if (rows[0]) refuseUnsafe(rows[0].role, options.allowServerRights ?? false)
      vetted = performance.now()
      return client
    } catch (error) {
      client.destroy()
      throw failureOf(error)
    }
  }

  async function plan<R extends DataRequest>(request: R): Promise<PlanOf<R>> {
    const catalogue = await tables.current()
    // `resolve` answers a request with the plan of the same kind.
    const resolved = (from: Catalogue) => resolve(from, request) as PlanOf<R>
    try {
      return resolved(catalogue)
    } catch (error) {
      if (!(error instanceof Failure) || !mayBeNew.has(error.code)) throw error
      const fresh = await tables.fresh()
      if (fresh === catalogue) throw error
      return resolved(fresh)
    }
  }

  /** Runs what a plan says. When the structure has changed under it, plans once more, if that needs the same rights. */
  async function attempt<P extends Plan, T>(
    planned: P,
    on: Held | undefined,
    work: (plan: P) => Promise<T>,
  ): Promise<T> {
    try {
      return await work(planned)
    } catch (error) {
      if (!(error instanceof Failure) || !moved.has(codeOf(error.cause))) throw error
      tables.invalidate()
      if (on !== undefined) throw error
      // The same request gives the same kind of plan; a caller who may not see rows had `head` set.
      const renewed = {
        ...(await plan(planned.request)),
        ...('head' in planned && { head: planned.head }),
      } as unknown as P
      if (JSON.stringify(touches(renewed)) !== JSON.stringify(touches(planned))) throw error
      return work(renewed)
    }
  }

  async function rows(plan: ReadPlan, on?: Held): Promise<RowsAnswer> {
    const { page, count, head, table, stripNulls } = plan
    if (head)
      return whole([empty], { rows: 0, hasMore: false, total: count && (await countRows(plan, count, on)) })
    const running = await run.start(
      {
        sql: selectSql(plan),
        table,
        stripNulls,
        limit: page.limit,
        highWater: count ? Number.POSITIVE_INFINITY : highWater,
      },
      on,
    )
    if (!running.query.done) return flowing(running, page.open)
    running.release()
    const { writer } = running.query
    const found = writer?.rows ?? 0
    // A page that is not full, or has no rows cut, shows where the rows end.
    const ends = found < page.limit && (found > 0 || page.offset === 0)
    const total = count && (ends ? page.offset + found : await countRows(plan, count, on))
    return whole(writer?.take() ?? [empty], {
      rows: found,
      hasMore: page.open && (writer?.more ?? false),
      total,
    })
  }

  async function countRows(
    plan: Pick<CountPlan, 'table' | 'where'>,
    mode: CountMode,
    on?: Held,
  ): Promise<number> {
    if (mode !== 'exact') {
      const estimate = plannedRows(await run.value(explainSql(plan), plan.table, on))
      if (mode === 'planned' || estimate > worthCounting) return estimate
    }
    return Number(await run.value(countSql(plan), plan.table, on))
  }

  async function write(plan: WritePlan, job: Job, on?: Held): Promise<WriteAnswer> {
    const bounded = plan.kind !== 'insert' && (plan.limit !== undefined || plan.offset > 0)
    const counted =
      plan.kind !== 'insert' && plan.count && bounded ? await countRows(plan, plan.count, on) : undefined
    const { writer, affected } = await run.finish(
      { ...job, table: plan.table, stripNulls: plan.stripNulls },
      on,
    )
    return {
      json: writer?.take() ?? [empty],
      rows: writer?.rows ?? 0,
      affected,
      truncated: writer?.more ?? false,
      total: plan.kind !== 'insert' && plan.count ? (counted ?? affected) : undefined,
    }
  }

  async function apply(statements: readonly string[]): Promise<void> {
    const client = await pool.acquire()
    try {
      await client.query('begin')
      for (const statement of statements) await client.query(statement)
      await client.query('commit')
    } catch (error) {
      if (client.isAlive()) await client.query('rollback')
      throw failureOf(error)
    } finally {
      pool.release(client)
      tables.invalidate()
    }
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
    select: (planned, on) => attempt(planned, on, (plan) => rows(plan, on)),
    count: (planned, on) => attempt(planned, on, (plan) => countRows(plan, plan.mode, on)),
    insert: (planned, on) => attempt(planned, on, (plan) => write(plan, insertJob(plan), on)),
    update: (planned, on) =>
      attempt(planned, on, (plan) => write(plan, updateJob(plan, options.maxRows), on)),
    delete: (planned, on) =>
      attempt(planned, on, (plan) => write(plan, { sql: deleteSql(plan), limit: options.maxRows }, on)),
    run: apply,
    catalogue: tables.fresh,
    invalidate: tables.invalidate,
    probe,
    inspectRole: async () => (await run.value(draft(roleSql))) as RoleFacts, // as the statement builds it
    stats: pool.stats,
    close: pool.close,
  }
}

/** A name that is not there may have been made since the catalogue was read. */
const mayBeNew = new Set(['unknown_column', 'table_not_found', 'unknown_relation'])
/** undefined_column, undefined_table: a name of the catalogue is gone. */
const moved = new Set(['42703', '42P01'])
const empty = Buffer.from('[]')

const whole = (json: readonly Buffer[], facts: ReturnType<RowsAnswer['facts']>): RowsAnswer => ({
  json,
  facts: () => facts,
})

/** Rows that are still coming: the connection goes back when they have been read, and is broken off when the reader leaves. */
function flowing({ query, release, explain }: Running, open: boolean): RowsAnswer {
  const chunks = query.chunks()
  const end = () => {
    if (!query.done) query.abandon()
    release()
  }
  let ended = false
  const once = () => {
    if (!ended) end()
    ended = true
  }
  const iterator: AsyncIterableIterator<Buffer> = {
    async next() {
      try {
        const result = await chunks.next()
        if (result.done) once()
        return result
      } catch (error) {
        once()
        throw explain(error)
      }
    },
    async return() {
      once()
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]: () => iterator,
  }
  return {
    json: iterator,
    facts() {
      if (!query.done) throw new Error('The rows have not been read to their end')
      return {
        rows: query.writer?.rows ?? 0,
        hasMore: open && (query.writer?.more ?? false),
        total: undefined,
      }
    },
  }
}

const insertJob = (plan: InsertPlan): Job => ({
  sql: insertSql(plan),
  written: [...plan.columns, ...(plan.conflict?.set ?? []).map((item) => item.column)],
  holds: (column, text) =>
    plan.rows.some((row) => Object.hasOwn(row, column.name) && says(row[column.name], text)),
})

const updateJob = (plan: UpdatePlan, limit: number): Job => ({
  sql: updateSql(plan),
  limit,
  written: plan.set.map((item) => item.column),
  holds: (column: Column, text) => plan.set.some((item) => item.column === column && says(item.value, text)),
})

/** `[{ "Plan": { "Plan Rows": 3 } }]`. */
const plannedRows = (explained: unknown): number =>
  (explained as readonly [{ readonly Plan: { readonly 'Plan Rows': number } }])[0].Plan['Plan Rows'] // as EXPLAIN writes it
