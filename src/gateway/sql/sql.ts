import { requireAbility } from '#databases/drivers/abilities.ts'
import type { SqlResult } from '#databases/drivers/driver.ts'
import { DRIVERS } from '#databases/drivers/index.ts'
import type { Json } from '#databases/request/request.ts'
import type { DriverName } from '#kernel/config/addresses.ts'
import { emit, type Kernel } from '#kernel/kernel.ts'
import { type GatewayCaller, kernelOf } from '../caller/caller.ts'
import { hasRight, requirePolicyBypass } from '../caller/caller-rights.ts'
import { fail } from '../errors.ts'
import { rowsOfAnswer } from '../event-rows.ts'
import { explainReadOnly } from '../read-only-client.ts'

export type RequestedSql = {
  readonly driver?: string
  readonly query: string
  readonly params?: readonly Json[] | null
  readonly schema_name?: string | null
  readonly db_name?: string | null
}

/** An older name in the interface. It means the client's own driver, of any kind. */
const ANY_DRIVER = 'athena'

/** The drivers that a request can name, and further spellings of them. */
export const NAMED_DRIVERS = [...Object.keys(DRIVERS), ANY_DRIVER]
export const DRIVER_SPELLINGS = Object.fromEntries(
  Object.entries(DRIVERS).flatMap(([name, { aliases }]) => aliases.map((alias) => [alias, name])),
)

export type ExecutedSql = {
  readonly result: SqlResult
  readonly backend: string
  readonly milliseconds: number
}

/** Runs the caller's own SQL (gateway.md 6). With the right to read only, it is one statement in a read-only transaction. */
export async function runSql(
  kernel: Kernel,
  caller: GatewayCaller,
  requested: RequestedSql,
): Promise<ExecutedSql> {
  const { client, backend, presence } = caller
  requirePolicyBypass(caller)
  requireDriver(requested.driver, backend.name)
  const mayOnlyRead = !hasRight(caller, 'gateway.query')
  const began = performance.now()
  const run = requireAbility(backend, 'sql')
  const result = await run({
    text: requested.query,
    values: requested.params ?? undefined,
    readOnly: client.isLogging || client.isFrozen || mayOnlyRead,
    rejectsSideEffects: mayOnlyRead,
    schema: requested.schema_name ?? undefined,
    database: requested.db_name === client.name ? undefined : (requested.db_name ?? undefined),
    maxRows: kernel.config.gateway.max_rows,
    presence,
  }).catch(explainReadOnly(client))
  await emit(
    kernelOf(kernel, caller),
    'gateway_query',
    {
      client: client.name,
      request_id: caller.requestId,
      affected_rows: result.affected,
    },
    rowsOfAnswer(kernel, result),
  )
  return { result, backend: backend.name, milliseconds: Math.round(performance.now() - began) }
}

function requireDriver(driver: string | undefined, name: DriverName): void {
  if (driver === undefined || driver === ANY_DRIVER || driver === name) return
  throw fail('driver_mismatch', {
    hint: `The client's driver is ${name}; use it, or another client`,
    details: { field: 'driver', driver, client_driver: name },
  })
}
