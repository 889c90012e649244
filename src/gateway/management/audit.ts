import type pg from 'pg'
import type { DefinitionChange } from '#databases/drivers/management.ts'
import { loggedRequestId } from '#kernel/audit/record-act.ts'
import { Failure } from '#kernel/errors.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import { createLoggingPool } from '../logging/logging-pool.ts'

/** A change of a client's schema, for the audit log. */
type SchemaChange = {
  readonly requestId: string
  readonly actorKeyId: string
  readonly client: string
  readonly operation: string
  readonly schema: string
  readonly object: string
  readonly objectType: 'table' | 'column' | 'index' | 'extension' | 'function'
  readonly statement: string
  /** Of a function: the change fills it in. */
  readonly definition?: Readonly<DefinitionChange> | undefined
}

/**
 * Audit log of schema changes, in the logging client (gateway.md 10). A row is written as `pending` on a separate connection before the
 * change, and updated to `succeeded` or `failed` afterwards. It stays `pending` where the outcome is not known.
 */
export type AuditLog = {
  /** Runs the work between the two writes. Throws 503 without starting the work if the log cannot be written. */
  around<T>(change: SchemaChange, work: () => Promise<T>): Promise<T>
  close(): Promise<void>
}

export function createAuditLog(url: string | undefined, { now, log }: Pick<Kernel, 'now' | 'log'>): AuditLog {
  if (url === undefined) {
    return { around: async () => Promise.reject(fail('audit_unavailable')), close: async () => {} }
  }
  const pool = createLoggingPool(url, { name: 'audit', max: 2, maxWaiting: 1_000 })
  return {
    async around(change, work) {
      const began = performance.now()
      const ids = await insertPending(pool, change, now())
      const end = (status: End['status'], error: string | null) => {
        const took = Math.round(performance.now() - began)
        return finish(pool, ids, change, { status, took, error }).catch((cause: unknown) =>
          reportPending(log, change, status, cause),
        )
      }
      try {
        const result = await work()
        await end('succeeded', null)
        return result
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error)
        await end(isInDoubt(error) ? 'pending' : 'failed', message)
        throw error
      }
    },
    close: () => pool.end(),
  }
}

/** The connection may have broken off after the commit, unless the failure says that nothing was changed. */
const isInDoubt = (error: unknown): boolean =>
  error instanceof Failure && error.code === 'connection_lost' && error.details?.changed !== false

/** The rows of a change: each is in `database_audit_log`, and that of a function in `function_ddl_audit_log` too. */
type Ids = { readonly id: string; readonly functionId: string | null }

const COLUMNS = `created_at, request_id, actor_key_id, service_client, operation, schema_name, object_name, object_type, statement, status`
const VALUES = `$1::timestamptz, $2, $3, $4, $5, $6, $7, $8, $9, 'pending'`
const PENDING_SQL = `insert into public.database_audit_log (${COLUMNS}) values (${VALUES}) returning id, null as "functionId"`
/** One statement, so that both tables or none have a row. */
const PENDING_FUNCTION_SQL = `
with logged as (insert into public.database_audit_log (${COLUMNS}) values (${VALUES}) returning id)
insert into public.function_ddl_audit_log (${COLUMNS}, function_signature, definition_before)
values (${VALUES}, $10, $11) returning (select id from logged), id as "functionId"`

async function insertPending(pool: pg.Pool, change: SchemaChange, now: Date): Promise<Ids> {
  const { definition } = change
  const values = [
    now,
    loggedRequestId(change.requestId),
    change.actorKeyId,
    change.client,
    change.operation,
    change.schema,
    change.object,
    change.objectType,
    change.statement,
  ]
  try {
    const { rows } =
      definition === undefined
        ? await pool.query<Ids>(PENDING_SQL, values)
        : await pool.query<Ids>(PENDING_FUNCTION_SQL, [...values, definition.signature, definition.before])
    const [row] = rows
    // A trigger of the log may leave out either row.
    if (!row?.id) throw new Error('insert … returning returned no row')
    return row
  } catch (cause) {
    throw fail('audit_unavailable', { cause, headers: { 'retry-after': '5' } })
  }
}

type End = {
  readonly status: 'succeeded' | 'failed' | 'pending'
  readonly took: number
  readonly error: string | null
}

const ENDED = `status = $2, duration_ms = $3, error_message = $4`
const FINISH_SQL = `update public.database_audit_log set ${ENDED} where id = $1`
const FINISH_FUNCTION_SQL = `
with logged as (${FINISH_SQL})
update public.function_ddl_audit_log set ${ENDED}, function_signature = $6, definition_before = $7, definition_after = $8
where id = $5`

async function finish(
  pool: pg.Pool,
  { id, functionId }: Ids,
  { definition }: SchemaChange,
  { status, took, error }: End,
): Promise<void> {
  const values = [id, status, took, error]
  await (definition === undefined
    ? pool.query(FINISH_SQL, values)
    : pool.query(FINISH_FUNCTION_SQL, [
        ...values,
        functionId,
        definition.signature,
        definition.before,
        status === 'succeeded' ? definition.after : null,
      ]))
}

/** The caller still gets the result. */
function reportPending(
  log: Kernel['log'],
  { requestId, operation }: SchemaChange,
  status: End['status'],
  error: unknown,
): void {
  log.error(
    { event: 'audit_row_pending', request_id: requestId, operation, status, error },
    'the end of a change could not be written to the audit log, where its row stays pending',
  )
}
