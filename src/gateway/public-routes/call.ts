import { requireAbility } from '#databases/drivers/abilities.ts'
import { redactText } from '#databases/plan/redact-failure.ts'
import type { Body } from '#databases/request/fields.ts'
import type { Json, Scope } from '#databases/request/request.ts'
import { outside } from '#databases/request/scope.ts'
import { Failure } from '#kernel/errors.ts'
import { edge } from '#kernel/http/failures.ts'
import { emit, type Kernel } from '#kernel/kernel.ts'
import { type GatewayCaller, kernelOf } from '../caller/caller.ts'
import { hasRight } from '../caller/caller-rights.ts'
import { fail } from '../errors.ts'
import { rowsOfAnswer } from '../event-rows.ts'
import { clientFrozen } from '../read-only-client.ts'
import type { ExecutedSql } from '../sql/sql.ts'

/** The body of a data operation with the table of the route. `prepare` checks everything else. */
export function bodyWithin(body: Body, { table }: Scope): Body {
  if (isGiven(body.schema_name)) throw outside('schema_name', 'A public route has no schema_name.')
  if (body.allow_unbounded === true)
    throw outside('allow_unbounded', 'A public route has no allow_unbounded.')
  const isNamed = ['table_name', 'table', 'view_name'].some((name) => isGiven(body[name]))
  return isNamed || table === undefined ? body : { ...body, table_name: quoted(table) }
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null && value !== ''

const quoted = ({ schema, table }: { readonly schema: string; readonly table: string }): string =>
  [schema, table].map((name) => `"${name.replaceAll('"', '""')}"`).join('.')

/** Runs the SQL of the route with the values of the body, as the caller. */
export async function runFixedSql(
  kernel: Kernel,
  caller: GatewayCaller,
  text: string,
  body: Body,
): Promise<ExecutedSql> {
  const { client, backend, presence, isImpersonated, requestId } = caller
  const values = valuesIn(body)
  const mayOnlyRead = !hasRight(caller, 'gateway.query')
  const began = performance.now()
  const { run } = requireAbility(backend, 'fixedSql')
  const result = await run({
    text,
    values,
    readOnly: client.isLogging || client.isFrozen || isImpersonated || mayOnlyRead,
    rejectsSideEffects: mayOnlyRead,
    schema: undefined,
    database: undefined,
    maxRows: kernel.config.gateway.max_rows,
    presence,
  }).catch((error: unknown) => {
    throw failureForCaller(caller, error)
  })
  const event = { client: client.name, request_id: requestId, affected_rows: result.affected }
  await emit(kernelOf(kernel, caller), 'gateway_query', event, rowsOfAnswer(kernel, result))
  return { result, backend: backend.name, milliseconds: Math.round(performance.now() - began) }
}

/** Everything else of a body of SQL is fixed by the route. */
function valuesIn(body: Body): readonly Json[] {
  const other = Object.keys(body).find((name) => name !== 'params' && isGiven(body[name]))
  if (other !== undefined) throw outside(other.slice(0, 100), 'The body has only params.')
  const params = body.params ?? []
  if (!Array.isArray(params))
    throw edge('validation_error', { message: 'params is a list', details: { field: 'params', in: 'body' } })
  return params // parsed from JSON text
}

/** The database's messages quote the statement and its rows. That of the number of params is ours. */
function failureForCaller({ client, grant, isImpersonated }: GatewayCaller, error: unknown): unknown {
  if (!(error instanceof Failure) || error.details?.field === 'params') return error
  const { code, cause } = error
  if (code === 'read_only' && client.isFrozen) return clientFrozen(client, cause)
  if (code === 'read_only' && isImpersonated) return fail('not_while_impersonating', { cause })
  if (code === 'read_only' && (grant.kind === 'key' || grant.kind === 'session') && !client.isLogging)
    return fail('insufficient_rights', { cause, hint: 'The key needs gateway.query' })
  return redactText(error)
}
