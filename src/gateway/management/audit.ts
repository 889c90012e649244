import type pg from 'pg'
import type { Clock } from '#kernel/clock.ts'
import { createAlarm } from '#kernel/db/connection-alarm.ts'
import { createPool } from '#kernel/db/guarded-pool.ts'
import { fail } from '../errors.ts'

/** A change of a client's schema, for the audit log. */
export type SchemaChange = {
  readonly requestId: string
  readonly actorKeyId: string
  readonly client: string
  readonly operation: string
  readonly schema: string
  readonly object: string
  readonly objectType: 'table' | 'column' | 'index' | 'extension' | 'function'
  readonly statement: string
}

/**
 * Audit log of schema changes, in the logging client (gateway.md 10). A row is written as `pending` on a separate connection before the
 * change, and updated to `succeeded` or `failed` afterwards.
 */
export type AuditLog = {
  /** Runs the work between the two writes. Throws 503 without starting the work if the log cannot be written. */
  around<T>(change: SchemaChange, work: () => Promise<T>): Promise<T>
  close(): Promise<void>
}

export function createAuditLog(url: string | undefined, now: Clock): AuditLog {
  if (url === undefined) {
    return { around: async () => Promise.reject(fail('audit_unavailable')), close: async () => {} }
  }
  const pool = createPool({
    url,
    name: 'audit',
    max: 2,
    maxWaiting: 1_000,
    statementTimeout: 10_000,
    // The next use replaces a broken idle connection, or fails by itself.
    onError: () => {},
    alarm: createAlarm(),
  })
  return {
    async around(change, work) {
      const began = performance.now()
      const id = await insertPending(pool, change, now())
      const took = () => Math.round(performance.now() - began)
      try {
        const result = await work()
        await finish(pool, id, { status: 'succeeded', took: took(), error: null })
        return result
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error)
        await finish(pool, id, { status: 'failed', took: took(), error: message })
        throw error
      }
    },
    close: () => pool.end(),
  }
}

async function insertPending(pool: pg.Pool, change: SchemaChange, now: Date): Promise<string> {
  try {
    const { rows } = await pool.query<{ id: string }>(
      `insert into public.database_audit_log
         (created_at, request_id, actor_key_id, service_client, operation, schema_name, object_name, object_type, statement, status)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'pending') returning id`,
      [
        now,
        change.requestId,
        change.actorKeyId,
        change.client,
        change.operation,
        change.schema,
        change.object,
        change.objectType,
        change.statement,
      ],
    )
    const [row] = rows
    if (row === undefined) throw new Error('insert … returning returned no row')
    return row.id
  } catch (cause) {
    throw fail('audit_unavailable', { cause, headers: { 'retry-after': '5' } })
  }
}

/** If this update fails, the row stays `pending`, because the log does not know the outcome. The caller still gets the result. */
async function finish(
  pool: pg.Pool,
  id: string,
  end: { readonly status: 'succeeded' | 'failed'; readonly took: number; readonly error: string | null },
): Promise<void> {
  const { status, took, error } = end
  await pool
    .query(
      'update public.database_audit_log set status = $2, duration_ms = $3, error_message = $4 where id = $1',
      [id, status, took, error],
    )
    .catch(() => {})
}
