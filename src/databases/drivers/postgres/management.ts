import type { Persona } from '#databases/drivers/driver.ts'
import type {
  ChangeConditions,
  Management,
  RunQuery,
  SchemaStatements,
} from '#databases/drivers/management.ts'
import type { Pool } from '#databases/drivers/postgres/pool/pool.ts'
import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import { failureOf } from '#databases/drivers/postgres/protocol/errors.ts'
import { beginPooled } from '#databases/drivers/postgres/protocol/pooler.ts'
import { codeOf } from '#databases/drivers/postgres/protocol/row-query.ts'
import { become } from '#databases/drivers/postgres/roles/persona.ts'
import { ALLOWED_COLUMN_DATA_TYPES } from '#databases/drivers/postgres/sql/ddl/columns.ts'
import { ALLOWED_INDEX_METHODS } from '#databases/drivers/postgres/sql/ddl/indexes.ts'
import { createTable } from '#databases/drivers/postgres/sql/ddl/tables.ts'
import { fail } from '#databases/failures.ts'
import { Failure } from '#kernel/errors.ts'

type Options = {
  /** The client's own role, on a client with row-level security. */
  readonly persona: Persona | undefined
  readonly statementTimeout: number
  /** Called after each change, also after a failed one. */
  readonly changed: () => void
}

export const createManagement = (pool: Pool, options: Options): Management => ({
  run: (statements, conditions) => run(pool, { ...conditions, statements }, options),
  tables: { create: createTable },
  columnDataTypes: ALLOWED_COLUMN_DATA_TYPES,
  indexMethods: ALLOWED_INDEX_METHODS,
})

async function run(pool: Pool, change: SchemaStatements, options: Options): Promise<void> {
  const client = await pool.acquire()
  try {
    await transact(client, change, options)
  } catch (error) {
    // When this fails too, the connection is not clean, and the pool closes it.
    if (client.isAlive()) await client.query('rollback').catch(() => {})
    throw await explained(client, change, error)
  } finally {
    pool.release(client)
    options.changed()
  }
}

async function transact(client: RowClient, change: SchemaStatements, options: Options): Promise<void> {
  const { statements, check, timeout } = change
  await (client.pooled === undefined ? client.query('begin') : beginPooled(client))
  if (options.persona !== undefined) await become(client, options.persona)
  await limitTime(client, timeout)
  await systemFirst(client)
  await check?.(queryOn(client))
  // The pool breaks off a connection whose statement is silent for longer than the client's statement timeout.
  const more = Math.max(0, (timeout ?? 0) - options.statementTimeout)
  for (const statement of statements) {
    client.since = performance.now() + more
    await client.query(statement)
  }
  client.since = performance.now()
  await client.query('commit')
}

/**
 * Waiting for a lock, a change makes all later statements on the table wait, even reads. So it gives up soon, and the caller tries again.
 * PostgreSQL detects a deadlock after one second.
 */
const LOCK_TIMEOUT = 2_000

async function limitTime(client: RowClient, timeout: number | undefined): Promise<void> {
  await client.query(`set local lock_timeout = ${LOCK_TIMEOUT}`)
  if (timeout !== undefined) await client.query(`set local statement_timeout = ${timeout}`)
}

/**
 * The search path for DDL: types of extensions are found in the client's schemas, those of the system first, because pg_catalog is not
 * named. pg_temp is named last, otherwise it would come first.
 */
async function systemFirst(client: RowClient): Promise<void> {
  const { rows } = await client.query<{ search_path: string }>('show search_path')
  const names = rows[0]?.search_path.match(/"(?:[^"]|"")*"|[^,\s"]+/g) ?? []
  const others = names.filter((name) => !SYSTEM.has(name))
  await client.query(`select pg_catalog.set_config('search_path', $1, true)`, [
    [...others, 'pg_temp'].join(', '),
  ])
}

const SYSTEM: ReadonlySet<string> = new Set(['pg_catalog', 'pg_temp'])

const queryOn =
  (client: RowClient): RunQuery =>
  async <Row extends object>(text: string, values: readonly unknown[]) => {
    client.since = performance.now()
    return (await client.query<Row>(text, [...values])).rows
  }

async function explained(client: RowClient, { explain }: ChangeConditions, error: unknown): Promise<unknown> {
  if (codeOf(error) === LOCK_NOT_AVAILABLE)
    return fail('object_busy', { cause: error, headers: { 'retry-after': '5' } })
  const failure = failureOf(error)
  if (!(failure instanceof Failure) || explain === undefined || !client.isClean()) return failure
  // An explanation that cannot be had must not hide the failure.
  return explain(queryOn(client), failure).catch(() => failure)
}

const LOCK_NOT_AVAILABLE = '55P03'
