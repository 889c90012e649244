import type { Persona, RowLevelSecurity } from '#databases/drivers/driver.ts'
import type {
  ChangeConditions,
  FunctionList,
  InstalledExtension,
  Management,
  RunQuery,
  SchemaStatements,
  TableUse,
} from '#databases/drivers/management.ts'
import { type ReadDefinitions, repeated } from '#databases/drivers/postgres/catalogue/definitions.ts'
import { functionListSql } from '#databases/drivers/postgres/catalogue/function-list.ts'
import { tableUseSql } from '#databases/drivers/postgres/catalogue/table-use.ts'
import type { Pool } from '#databases/drivers/postgres/pool/pool.ts'
import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import { failureOf } from '#databases/drivers/postgres/protocol/errors.ts'
import { beginPooled } from '#databases/drivers/postgres/protocol/pooler.ts'
import { codeOf } from '#databases/drivers/postgres/protocol/query-errors.ts'
import { become, ONLY_CATALOG } from '#databases/drivers/postgres/roles/persona.ts'
import type { Runner } from '#databases/drivers/postgres/runner.ts'
import { ALLOWED_COLUMN_DATA_TYPES } from '#databases/drivers/postgres/sql/ddl/columns.ts'
import { editTable } from '#databases/drivers/postgres/sql/ddl/edits.ts'
import { installExtension, installedSql } from '#databases/drivers/postgres/sql/ddl/extensions.ts'
import { dropFunction, upsertFunction } from '#databases/drivers/postgres/sql/ddl/functions.ts'
import { ALLOWED_INDEX_METHODS, createIndex, dropIndex } from '#databases/drivers/postgres/sql/ddl/indexes.ts'
import { requireUnreserved } from '#databases/drivers/postgres/sql/ddl/names.ts'
import { createTable, dropColumn, dropTable } from '#databases/drivers/postgres/sql/ddl/tables.ts'
import { createTablePolicies } from '#databases/drivers/postgres/table-policies.ts'
import { fail } from '#databases/failures.ts'
import { Failure } from '#kernel/errors.ts'

type ManagementOptions = {
  /** The client's own role, on a client with row-level security. */
  readonly persona: Persona | undefined
  readonly rowLevelSecurity: RowLevelSecurity | undefined
  readonly statementTimeout: number
  readonly readDefinitions: ReadDefinitions
  /** Called after each change, also after a failed one. */
  readonly changed: () => void
}

export const createManagement = (pool: Pool, runner: Runner, options: ManagementOptions): Management => ({
  run: (statements, conditions) => run(pool, { ...conditions, statements }, options),
  requireUnreserved,
  tables: {
    create: createTable,
    edit: editTable,
    drop: dropTable,
    use: async (tables) => (await runner.systemValue(tableUseSql(tables))) as TableUse, // as the statement builds it
  },
  columns: { drop: dropColumn },
  indexes: { create: createIndex, drop: dropIndex },
  extensions: {
    install: installExtension,
    find: async (name) => (await runner.systemValue(installedSql(name))) as InstalledExtension | undefined, // as the statement builds it
  },
  functions: {
    list: async (filter) =>
      (await options.readDefinitions(() => runner.systemValue(functionListSql(filter)))) as FunctionList, // as the statement builds it
    upsert: upsertFunction,
    drop: dropFunction,
  },
  policies:
    options.rowLevelSecurity &&
    createTablePolicies(
      (sql) => options.readDefinitions(() => runner.systemValue(sql)),
      options.rowLevelSecurity,
    ),
  columnDataTypes: ALLOWED_COLUMN_DATA_TYPES,
  indexMethods: ALLOWED_INDEX_METHODS,
})

async function run(pool: Pool, change: SchemaStatements, options: ManagementOptions): Promise<void> {
  const client = await pool.acquire()
  // Checks and index expressions of the table may run the client's own functions.
  client.mayBeDirty = true
  try {
    await repeated(() => transact(client, options, () => apply(client, change, options)))
  } catch (error) {
    throw await failureOfChange(client, change, { error, options })
  } finally {
    pool.release(client)
    options.changed()
  }
}

async function transact<T>(
  client: RowClient,
  { persona }: ManagementOptions,
  work: () => Promise<T>,
): Promise<T> {
  client.since = performance.now()
  try {
    await (client.pooled === undefined ? client.query('begin') : beginPooled(client))
    if (persona !== undefined) await become(client, persona)
    const result = await work()
    client.since = performance.now()
    await client.query('commit')
    return result
  } catch (error) {
    // When this fails too, the connection is not clean, and the pool closes it.
    if (client.isAlive()) await client.query('rollback').catch(() => {})
    throw error
  }
}

async function apply(client: RowClient, change: SchemaStatements, options: ManagementOptions): Promise<void> {
  const { statements, check, verify, timeout = options.statementTimeout } = change
  await limitTime(client, change)
  const { rows } = await client.query<{ search_path: string }>('show search_path')
  if (check !== undefined) {
    await client.query(ONLY_CATALOG)
    await check(queryOn(client))
  }
  await client.query(`select pg_catalog.set_config('search_path', $1, true)`, [
    systemFirst(rows[0]?.search_path ?? ''),
  ])
  const deadline = performance.now() + timeout
  for (const statement of statements) {
    if (performance.now() > deadline) throw fail('statement_timeout')
    // The pool breaks off a connection whose statement takes longer than the client's statement timeout.
    client.since = performance.now() + timeout - options.statementTimeout
    // The extended protocol, in which a text is one statement.
    const query = { text: statement, queryMode: 'extended' }
    await client.query(query)
  }
  if (verify !== undefined) {
    await client.query(ONLY_CATALOG)
    await verify(queryOn(client))
  }
}

/**
 * Waiting for a lock, a change makes all later statements on the table wait, even reads. So it gives up soon, and the caller tries again.
 * PostgreSQL detects a deadlock after one second.
 */
const LOCK_TIMEOUT = 2_000

async function limitTime(client: RowClient, { lockTimeout = LOCK_TIMEOUT, timeout }: SchemaStatements) {
  await client.query(`set local lock_timeout = ${lockTimeout}`)
  if (timeout !== undefined) await client.query(`set local statement_timeout = ${timeout}`)
}

/**
 * The search path for DDL: types of extensions are found in the client's schemas, those of the system first, because pg_catalog is not
 * named. pg_temp is named last, otherwise it would come first.
 */
function systemFirst(searchPath: string): string {
  const names = searchPath.match(/"(?:[^"]|"")*"|[^,\s"]+/g) ?? []
  return [...names.filter((name) => !SYSTEM.has(name)), 'pg_temp'].join(', ')
}

const SYSTEM: ReadonlySet<string> = new Set(['pg_catalog', 'pg_temp'])

const queryOn =
  (client: RowClient): RunQuery =>
  async <Row extends object>(text: string, values: readonly unknown[]) => {
    client.since = performance.now()
    return (await client.query<Row>(text, [...values])).rows
  }

async function failureOfChange(
  client: RowClient,
  { explain }: ChangeConditions,
  { error, options }: { readonly error: unknown; readonly options: ManagementOptions },
): Promise<unknown> {
  if (codeOf(error) === LOCK_NOT_AVAILABLE)
    return fail('object_busy', { cause: error, headers: { 'retry-after': '5' } })
  if (error instanceof Failure) return error
  const failure = failureOf(error)
  if (failure instanceof Failure && isOfCatalogue(failure)) return fail('object_exists', { cause: error })
  if (!(failure instanceof Failure) || explain === undefined || !client.isClean()) return failure
  const work = async () => {
    await client.query(ONLY_CATALOG)
    return explain(queryOn(client), failure)
  }
  // An explanation that fails must not hide the failure.
  return transact(client, options, work).catch(() => failure)
}

const LOCK_NOT_AVAILABLE = '55P03'

/** Two objects of one name were made at the same moment. */
const isOfCatalogue = ({ code, details }: Failure): boolean =>
  code === 'unique_violation' && JSON.stringify(details?.other_table ?? null).includes('"pg_catalog"')
