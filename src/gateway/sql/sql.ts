import type { SqlResult } from '#databases/drivers/driver.ts'
import type { Json } from '#databases/request/request.ts'
import { emitAfterCommit, type Kernel } from '#kernel/kernel.ts'
import type { GatewayCaller } from '../caller.ts'
import { hasRight, requirePassing } from '../caller-rights.ts'
import { fail } from '../errors.ts'
import { explainReadOnly } from '../read-only-client.ts'

export type AskedSql = {
  readonly driver?: string
  readonly query: string
  readonly params?: readonly Json[] | null
  readonly schema_name?: string | null
  readonly db_name?: string | null
}

/** The interface's old word for the client's own driver. */
const OWN = 'athena'

/** What the gateway's drivers are called in requests. */
const DRIVERS: Readonly<Record<string, string>> = {
  postgresql: 'postgresql',
  postgres: 'postgresql',
  supabase: 'supabase',
  scylla: 'scylladb',
  scylladb: 'scylladb',
}
export const DRIVER_WORDS = [...Object.keys(DRIVERS), OWN]

export type RanSql = { readonly result: SqlResult; readonly backend: string; readonly milliseconds: number }

/** Runs the caller's own SQL (gateway.md 6). Who may only read gets one statement in a transaction that only reads. */
export async function runSql(kernel: Kernel, caller: GatewayCaller, asked: AskedSql): Promise<RanSql> {
  const { client, backend, presence } = caller
  requirePassing(caller)
  requireDriver(asked.driver, backend.name)
  const onlyReads = !hasRight(caller, 'gateway.query')
  const began = performance.now()
  const result = await backend
    .sql({
      text: asked.query,
      values: asked.params ?? undefined,
      readOnly: client.isLogging || client.isFrozen || onlyReads,
      onlyReads,
      schema: asked.schema_name ?? undefined,
      database: asked.db_name === client.name ? undefined : (asked.db_name ?? undefined),
      maxRows: kernel.config.gateway.max_rows,
      presence,
    })
    .catch(explainReadOnly(client))
  emitAfterCommit(kernel, 'gateway_query', {
    client: client.name,
    requestId: caller.requestId,
    rows: result.rows,
  })
  return { result, backend: backend.name, milliseconds: Math.round(performance.now() - began) }
}

function requireDriver(word: string | undefined, name: string): void {
  if (word === undefined || word === OWN || DRIVERS[word] === name) return
  throw fail('driver_mismatch', {
    hint: `The client's driver is ${name}; name it, or another client`,
    details: { field: 'driver', driver: word, client_driver: name },
  })
}
