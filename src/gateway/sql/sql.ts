import { requireAbility } from '#databases/drivers/abilities.ts'
import type { SqlResult } from '#databases/drivers/driver.ts'
import { DRIVERS } from '#databases/drivers/index.ts'
import type { Json } from '#databases/request/request.ts'
import type { DriverName } from '#kernel/config/addresses.ts'
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

/** The interface's older name for the client's own driver. */
const OWN = 'athena'

export const DRIVER_WORDS = [...Object.values(DRIVERS).flatMap(({ words }) => words), OWN]

export type RanSql = { readonly result: SqlResult; readonly backend: string; readonly milliseconds: number }

/** Runs the caller's own SQL (gateway.md 6). With the right to read only, it is one statement in a read-only transaction. */
export async function runSql(kernel: Kernel, caller: GatewayCaller, asked: AskedSql): Promise<RanSql> {
  const { client, backend, presence } = caller
  requirePassing(caller)
  requireDriver(asked.driver, backend.name)
  const onlyReads = !hasRight(caller, 'gateway.query')
  const began = performance.now()
  const run = requireAbility(backend, 'sql')
  const result = await run({
    text: asked.query,
    values: asked.params ?? undefined,
    readOnly: client.isLogging || client.isFrozen || onlyReads,
    onlyReads,
    schema: asked.schema_name ?? undefined,
    database: asked.db_name === client.name ? undefined : (asked.db_name ?? undefined),
    maxRows: kernel.config.gateway.max_rows,
    presence,
  }).catch(explainReadOnly(client))
  emitAfterCommit(kernel, 'gateway_query', {
    client: client.name,
    requestId: caller.requestId,
    rows: result.rows,
  })
  return { result, backend: backend.name, milliseconds: Math.round(performance.now() - began) }
}

function requireDriver(word: string | undefined, name: DriverName): void {
  if (word === undefined || word === OWN || DRIVERS[name].words.includes(word)) return
  throw fail('driver_mismatch', {
    hint: `The client's driver is ${name}; use it, or another client`,
    details: { field: 'driver', driver: word, client_driver: name },
  })
}
