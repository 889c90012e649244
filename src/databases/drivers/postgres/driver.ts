import type pg from 'pg'
import { createCatalogueCache, isStructural } from '#databases/drivers/catalogue-cache.ts'
import type {
  AbilityOf,
  Driver,
  DriverMaking,
  OpenTransaction,
  Persona,
  Presence,
  RowLevelSecurity,
  SqlRole,
} from '#databases/drivers/driver.ts'
import { memoizeAsync } from '#databases/drivers/memoize-async.ts'
import { createReadAheadBudgets, type MemoryBudget } from '#databases/drivers/memory-budget.ts'
import { createPlanner } from '#databases/drivers/planner.ts'
import { callFunction } from '#databases/drivers/postgres/call.ts'
import { runSql } from '#databases/drivers/postgres/caller-sql.ts'
import {
  buildCatalogue,
  CATALOGUE_SQL,
  type CatalogueRow,
} from '#databases/drivers/postgres/catalogue/catalogue.ts'
import { createDefaultsReader } from '#databases/drivers/postgres/catalogue/column-defaults.ts'
import {
  createDefinitionReader,
  createDefinitions,
  repeated,
} from '#databases/drivers/postgres/catalogue/definitions.ts'
import { createDirectConnections, REACHED_SQL } from '#databases/drivers/postgres/direct-connections.ts'
import { createIdempotencyStore } from '#databases/drivers/postgres/idempotency-store.ts'
import { createManagement } from '#databases/drivers/postgres/management.ts'
import { createPool, type Pool, type PoolOptions } from '#databases/drivers/postgres/pool/pool.ts'
import {
  createUntrustedConnections,
  type RunUntrusted,
} from '#databases/drivers/postgres/pool/untrusted-connections.ts'
import { connect, createConnector, within } from '#databases/drivers/postgres/protocol/connect.ts'
import type { Terminate } from '#databases/drivers/postgres/protocol/connection.ts'
import { failureOf } from '#databases/drivers/postgres/protocol/errors.ts'
import { countRows, selectRows, streamRows } from '#databases/drivers/postgres/read-rows.ts'
import { completePersona, OWN } from '#databases/drivers/postgres/roles/persona.ts'
import { createRoleCheck, type RoleCheck } from '#databases/drivers/postgres/roles/role-check.ts'
import { loginAs, OWN_ROLES_SQL } from '#databases/drivers/postgres/roles/sql-role.ts'
import { createRunner } from '#databases/drivers/postgres/runner.ts'
import { requireOneStatement } from '#databases/drivers/postgres/sql/fixed-statement.ts'
import { createSql } from '#databases/drivers/postgres/sql/sql-builder.ts'
import { inTransaction } from '#databases/drivers/postgres/transaction.ts'
import { writeRows } from '#databases/drivers/postgres/write-rows.ts'
import type { DatabaseFailureCode } from '#databases/failures.ts'
import type { ReadPlan, WritePlan } from '#databases/plan/plan.ts'
import { IDENTITY_SQL } from '#kernel/db/database-identity.ts'
import { Failure } from '#kernel/errors.ts'

export type PostgresOptions = {
  /** The client, for messages. */
  readonly name?: string
  /** A connection string, or a pg configuration (for the socket of the embedded server). */
  readonly url: string | pg.ClientConfig
  /** The same database past the pooler at `url`. */
  readonly directUrl?: string | undefined
  readonly maxConnections: number
  /** Connections for callers' own SQL (gateway.md 6), and as many for functions. */
  readonly sqlConnections: number
  /** Connections for long reads (`stream`). */
  readonly streamConnections?: number
  readonly maxWaiting: number
  /** Milliseconds, as all of these. */
  readonly connectTimeout: number
  readonly statementTimeout: number
  /** How long the server may be silent in a long read. */
  readonly streamTimeout?: number
  readonly idleTimeout: number
  readonly applicationName: string
  readonly readOnly?: boolean
  /** Largest number of rows in the answer of an update or delete (`gateway.max_rows`). */
  readonly maxRows: number
  /** Largest number of bytes of a collected answer (`limits.answer`). */
  readonly answerBytes: number
  /** The client is named in `gateway.unsafe_clients`. */
  readonly allowServerRights?: boolean
  /** Memory for slow readers, shared by all clients of the process; without it this client has its own. */
  readonly readAhead?: (() => MemoryBudget) | undefined
  /** The server of the control database. On that server its roles are refused for clients. */
  readonly controlServer?: DriverMaking['controlServer']
  /** Callers act as these roles. */
  readonly rowLevelSecurity?: RowLevelSecurity | undefined
  /** Callers' own SQL logs in as this role instead of that of the URL. */
  readonly sqlRole?: SqlRole | undefined
}

/** PostgreSQL has every ability; policies where its client has row-level security. */
export type PostgresDriver = Driver & AbilityOf

export function createPostgresDriver(given: PostgresOptions): PostgresDriver {
  const options = { ...given, readAhead: given.readAhead ?? createReadAheadBudgets(given.answerBytes) }
  const checkRole = createRoleCheck(options)
  const terminate = createTerminator(options)
  const open = createConnector(options)
  const pool = createPool({ ...options, terminate, connect: () => checkRole(open) })
  const own = options.rowLevelSecurity && completePersona(OWN, options.rowLevelSecurity)
  const limits = { rows: options.maxRows, bytes: options.answerBytes }
  const run = createRunner(pool, own)
  // A long read that waits for its reader must not keep a connection from other statements, for which its reader may be waiting.
  const streams = openStreamPool(options, checkRole)
  const runStream = createRunner(streams, own)
  // Separate pools, so that long reports do not delay functions.
  const [ofSql, ofCalls] = [sqlPool(), openUntrustedPool(options, checkRole)]
  const tables = createCatalogueCache(async () =>
    buildCatalogue((await repeated(() => run.value(createSql(CATALOGUE_SQL)))) as CatalogueRow),
  ) // as the statement builds it
  const { plan, attempt } = createPlanner(tables, ({ code }) => MOVED.has(code))
  const defaultsFor = createDefaultsReader(run)
  const readDefinitions = createDefinitionReader(options)
  const direct = createDirectConnections(options.directUrl, pool, {
    ...options,
    name: options.name ?? '',
    terminate: createTerminator({ ...options, url: options.directUrl ?? options.url }),
    checkRole: createRoleCheck(options),
    reached: memoizeAsync(() => Promise.all([identity(), run.systemValue(createSql(REACHED_SQL))])),
  })
  const runDirect = direct.pool === pool ? run : createRunner(direct.pool, own)
  const management = createManagement(direct.pool, runDirect, {
    readDefinitions,
    persona: own,
    rowLevelSecurity: options.rowLevelSecurity,
    statementTimeout: options.statementTimeout,
    changed: tables.invalidate,
  })

  function sqlPool(): UntrustedPool {
    const { sqlRole, connectTimeout } = options
    if (sqlRole === undefined) return openUntrustedPool(options, checkRole)
    const mayNotBecome = async () => (await run.systemValue(OWN_ROLES_SQL)) as readonly string[] // as the statement builds it
    return openUntrustedPool(
      { ...options, url: loginAs(options.url, sqlRole) },
      createRoleCheck({ connectTimeout, mayNotBecome, controlServer: options.controlServer }),
    )
  }

  const identity = memoizeAsync(async () => {
    try {
      return String(
        await run.value(createSql(`select pg_catalog.to_json(identity) from (${IDENTITY_SQL}) as own`)),
      )
    } catch (error) {
      if (error instanceof Failure && error.code === 'permission_denied') return undefined
      throw error
    }
  })

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

  /** Operations that run as the caller. */
  function operations(persona: Persona | undefined) {
    const [mine, streaming] =
      persona === undefined ? [run, runStream] : [run.as(persona), runStream.as(persona)]
    const write = <P extends WritePlan>(planned: P, on?: OpenTransaction, presence?: Presence) =>
      attempt(
        planned,
        (plan) => writeRows({ run: mine, defaultsFor }, plan, limits, on, presence),
        on !== undefined,
      )
    return {
      select: (planned, on, presence) =>
        attempt(planned, (plan) => selectRows(mine, plan, limits, on, presence), on !== undefined),
      async selectCsv(planned, presence) {
        const csv = { ...limits, isCsv: true }
        const read = (plan: ReadPlan) => selectRows(mine, plan, csv, undefined, presence)
        const { json, facts } = await attempt(planned, read)
        return { lines: json, facts }
      },
      stream: (planned, presence) =>
        attempt(planned, (plan) => streamRows(streaming, plan, limits, presence)),
      async streamCsv(planned, presence) {
        const csv = { ...limits, isCsv: true }
        const read = (plan: ReadPlan) => streamRows(streaming, plan, csv, presence)
        const { json, facts } = await attempt(planned, read)
        return { lines: json, facts }
      },
      count: (planned, on, presence) =>
        attempt(planned, (plan) => countRows(mine, plan, plan.request.mode, on, presence), on !== undefined),
      insert: write,
      update: write,
      delete: write,
      call: (request) => callFunction(mine, ofCalls.run, request, { persona, maxBytes: limits.bytes }),
      fixedSql: {
        check: requireOneStatement,
        // The login of callers' own SQL may not take the roles of callers.
        run: async (request) =>
          runSql({ ...(persona === undefined ? ofSql : ofCalls), maxBytes: limits.bytes, persona }, request),
      },
      transaction: (work, how) =>
        inTransaction(pool, work, { ...how, timeout: options.statementTimeout + 5_000, persona }),
      idempotency: createIdempotencyStore(run, management.run),
    } satisfies Partial<Driver>
  }

  const policiesOf = (security: RowLevelSecurity): Driver['policies'] => ({
    as: (persona) => ({ ...driver, ...operations(completePersona(persona, security)) }),
  })

  const driver: PostgresDriver = {
    name: 'postgresql',
    readsSnapshot: true,
    async plan(request, rights) {
      const planned = await plan(request, rights)
      // Now, because an insert in a transaction has its own connection and must not wait for another one.
      await defaultsFor(planned)
      return planned
    },
    ...operations(own),
    checksWrites: true,
    keepsGuards: true,
    policies: options.rowLevelSecurity && policiesOf(options.rowLevelSecurity),
    async sql(request) {
      const rejectsSideEffects = request.rejectsSideEffects === true && options.sqlRole === undefined
      const how = { run: ofSql.run, maxBytes: limits.bytes }
      const result = await runSql(how, { ...request, rejectsSideEffects })
      if (!request.readOnly && isStructural(request.text)) tables.invalidate()
      return result
    },
    management,
    requireSession: direct.requireSession,
    catalogue: tables.fresh,
    ...createDefinitions(run, readDefinitions),
    invalidate: tables.invalidate,
    identity,
    probe,
    stats: pool.stats,
    close: async () =>
      void (await Promise.all([
        pool.close(),
        direct.close(),
        streams.close(),
        ofSql.close(),
        ofCalls.close(),
      ])),
  }
  return driver
}

function openStreamPool(
  options: PostgresOptions & Pick<PoolOptions, 'readAhead'>,
  checkRole: RoleCheck,
): Pool {
  const {
    streamConnections: maxConnections = 2,
    streamTimeout: statementTimeout = options.statementTimeout,
  } = options
  const own = { ...options, maxConnections, statementTimeout, slowReaders: maxConnections }
  const open = createConnector(own)
  return createPool({ ...own, terminate: createTerminator(options), connect: () => checkRole(open) })
}

type UntrustedPool = { readonly run: RunUntrusted; readonly close: () => Promise<void> }

/** Connections for callers' own SQL and functions, with the login of these options. */
function openUntrustedPool(
  options: PostgresOptions & Pick<PoolOptions, 'readAhead'>,
  checkRole: RoleCheck,
): UntrustedPool {
  const terminate = createTerminator(options)
  const { sqlConnections: maxConnections } = options
  const open = createConnector(options)
  const pool = createPool({ ...options, terminate, maxConnections, connect: () => checkRole(open) })
  return { run: createUntrustedConnections(pool, options.statementTimeout, terminate), close: pool.close }
}

/** On a separate connection of the same login: all connections of the pools may be blocked. */
function createTerminator(options: PostgresOptions): Terminate {
  return (processId) => {
    const end = async () => {
      const client = await connect(options)
      const text = 'select pg_catalog.pg_terminate_backend($1)'
      await within(options.connectTimeout, client, () => client.query(text, [processId])).finally(() =>
        client.end(),
      )
    }
    // The backend may have ended already, and the server may be down.
    end().catch(() => {})
  }
}

/** A name of the catalogue no longer exists. */
const MOVED: ReadonlySet<string> = new Set<DatabaseFailureCode>(['unknown_column', 'table_not_found'])
