import type pg from 'pg'
import { createCatalogueCache, isStructural } from '#databases/drivers/catalogue-cache.ts'
import type {
  AbilityOf,
  Driver,
  DriverContext,
  RowLevelSecurity,
  SqlRole,
} from '#databases/drivers/driver.ts'
import { createReadAheadBudgets, type MemoryBudget } from '#databases/drivers/memory-budget.ts'
import { createPlanner } from '#databases/drivers/planner.ts'
import { callerOperations } from '#databases/drivers/postgres/caller-operations.ts'
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
import { createChangeFeed } from '#databases/drivers/postgres/changes/feed.ts'
import { createPolicyReads } from '#databases/drivers/postgres/changes/policy-reads.ts'
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
import { completePersona, OWN } from '#databases/drivers/postgres/roles/persona.ts'
import { createRoleCheck, type RoleCheck } from '#databases/drivers/postgres/roles/role-check.ts'
import { loginAs, OWN_ROLES_SQL } from '#databases/drivers/postgres/roles/sql-role.ts'
import { createRunner, type Runner } from '#databases/drivers/postgres/runner.ts'
import { createSql } from '#databases/drivers/postgres/sql/sql-builder.ts'
import type { DatabaseFailureCode } from '#databases/failures.ts'
import { EVERY_RIGHT } from '#databases/plan/rights.ts'
import { IDENTITY_SQL } from '#kernel/db/database-identity.ts'
import { Failure } from '#kernel/errors.ts'
import { openedOnce } from '#kernel/opened-once.ts'

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
  readonly controlServer?: DriverContext['controlServer']
  /** Callers act as these roles. */
  readonly rowLevelSecurity?: RowLevelSecurity | undefined
  /** Callers' own SQL logs in as this role instead of that of the URL. */
  readonly sqlRole?: SqlRole | undefined
}

type OpenOptions = PostgresOptions & Pick<PoolOptions, 'readAhead'>

/** PostgreSQL has every ability; policies where its client has row-level security. */
export type PostgresDriver = Driver & AbilityOf

export function createPostgresDriver(given: PostgresOptions): PostgresDriver {
  const options = { ...given, readAhead: given.readAhead ?? createReadAheadBudgets(given.answerBytes) }
  const checkRole = createRoleCheck(options)
  const terminate = createTerminator(options)
  const open = createConnector(options)
  const pool = createPool({ ...options, terminate, connect: () => checkRole(open) })
  const security = options.rowLevelSecurity
  const ownPersona = security && completePersona(OWN, security)
  const limits = { rows: options.maxRows, bytes: options.answerBytes }
  const run = createRunner(pool, ownPersona)
  // A long read that waits for its reader must not keep a connection from other statements, for which its reader may be waiting.
  const streams = openStreamPool(options, checkRole)
  const runStream = createRunner(streams, ownPersona)
  // Separate pools, so that long reports do not delay functions.
  const [ofSql, ofCalls] = [openSqlPool(options, checkRole, run), openUntrustedPool(options, checkRole)]
  const tables = createCatalogueCache(async () =>
    buildCatalogue((await repeated(() => run.value(createSql(CATALOGUE_SQL)))) as CatalogueRow),
  ) // as the statement builds it
  const { plan, attempt } = createPlanner(tables, ({ code }) => MOVED.has(code))
  const defaultsFor = createDefaultsReader(run)
  const identity = openedOnce(() => readIdentity(run)).get
  const readDefinitions = createDefinitionReader(options)
  const direct = createDirectConnections(options.directUrl, pool, {
    ...options,
    name: options.name ?? '',
    terminate: createTerminator({ ...options, url: options.directUrl ?? options.url }),
    checkRole: createRoleCheck(options),
    reached: openedOnce(() => Promise.all([identity(), run.systemValue(createSql(REACHED_SQL))])).get,
  })
  const runDirect = direct.pool === pool ? run : createRunner(direct.pool, ownPersona)
  const management = createManagement(direct.pool, runDirect, {
    readDefinitions,
    persona: ownPersona,
    rowLevelSecurity: options.rowLevelSecurity,
    statementTimeout: options.statementTimeout,
    changed: tables.invalidate,
  })

  const parts = {
    pool,
    run,
    runStream,
    runOfSql: ofSql.run,
    runOfCalls: ofCalls.run,
    attempt,
    defaultsFor,
    limits,
    transactionTimeout: options.statementTimeout + 5_000,
  }
  const driver: PostgresDriver = {
    name: 'postgresql',
    readsSnapshot: true,
    async plan(request, rights) {
      const planned = await plan(request, rights)
      // Now, because an insert in a transaction has its own connection and must not wait for another one.
      await defaultsFor(planned)
      return planned
    },
    ...callerOperations(parts, ownPersona),
    idempotency: createIdempotencyStore(run, management.run),
    checksWrites: true,
    keepsGuards: true,
    policies: security && {
      as: (persona) => ({ ...driver, ...callerOperations(parts, completePersona(persona, security)) }),
    },
    async sql(request) {
      const rejectsSideEffects = request.rejectsSideEffects === true && options.sqlRole === undefined
      const how = { run: ofSql.run, maxBytes: limits.bytes }
      const result = await runSql(how, { ...request, rejectsSideEffects })
      if (!request.readOnly && isStructural(request.text)) tables.invalidate()
      return result
    },
    management,
    changes: createChangeFeed({
      runner: run,
      run: management.run,
      identity,
      readsOf: security
        ? createPolicyReads((sql) => readDefinitions(() => run.systemValue(sql)), security)
        : async () => ({ claims: [], tables: [] }),
      readRows: async (request) => driver.select(await driver.plan(request, EVERY_RIGHT)),
      structureChanged: tables.invalidate,
    }),
    requireSession: direct.requireSession,
    catalogue: tables.fresh,
    ...createDefinitions(run, readDefinitions),
    invalidate: tables.invalidate,
    identity,
    probe: () => probe(pool),
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

/** Undefined for a role that may not read it. */
async function readIdentity(run: Runner): Promise<string | undefined> {
  try {
    return String(
      await run.value(createSql(`select pg_catalog.to_json(identity) from (${IDENTITY_SQL}) as own`)),
    )
  } catch (error) {
    if (error instanceof Failure && error.code === 'permission_denied') return undefined
    throw error
  }
}

async function probe(pool: Pool): Promise<string> {
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

function openStreamPool(options: OpenOptions, checkRole: RoleCheck): Pool {
  const {
    streamConnections: maxConnections = 2,
    streamTimeout: statementTimeout = options.statementTimeout,
  } = options
  const streaming = { ...options, maxConnections, statementTimeout, slowReaders: maxConnections }
  const open = createConnector(streaming)
  return createPool({ ...streaming, terminate: createTerminator(options), connect: () => checkRole(open) })
}

type UntrustedPool = { readonly run: RunUntrusted; readonly close: () => Promise<void> }

/** Connections for callers' own SQL, with the login of the SQL role if there is one. */
function openSqlPool(options: OpenOptions, checkRole: RoleCheck, run: Runner): UntrustedPool {
  const { sqlRole, connectTimeout, controlServer } = options
  if (sqlRole === undefined) return openUntrustedPool(options, checkRole)
  const mayNotBecome = async () => (await run.systemValue(OWN_ROLES_SQL)) as readonly string[] // as the statement builds it
  return openUntrustedPool(
    { ...options, url: loginAs(options.url, sqlRole) },
    createRoleCheck({ connectTimeout, mayNotBecome, controlServer }),
  )
}

/** Connections for callers' own SQL and functions, with the login of these options. */
function openUntrustedPool(options: OpenOptions, checkRole: RoleCheck): UntrustedPool {
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
