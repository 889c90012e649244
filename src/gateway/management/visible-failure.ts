import type { Dependent } from '#databases/drivers/management.ts'
import { VALUE_FAILURES } from '#databases/failures.ts'
import { redactText } from '#databases/plan/redact-failure.ts'
import { Failure } from '#kernel/errors.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { bypassesPolicies, hasRight, rightsOf } from '../caller/caller-rights.ts'
import { fail } from '../errors.ts'

/** A failure of a change, without what its caller may not read: values of the table, and names of other tables. */
export function visibleFailure(
  caller: GatewayCaller,
  error: unknown,
  { schema, table }: { readonly schema: string; readonly table: string | undefined },
): unknown {
  if (!(error instanceof Failure)) return error
  if (error.details?.dependents !== undefined) return withVisibleDependents(caller, error)
  return maySeeValues(caller, { schema, table }) || !VALUE_FAILURES.has(error.code)
    ? error
    : redactText(error)
}

/** A change acts as the client's own role, so a value may be of a row that policies hide from the caller. */
function maySeeValues(
  caller: GatewayCaller,
  { schema, table }: { readonly schema: string; readonly table: string | undefined },
): boolean {
  if (table === undefined) return true
  const { client } = caller
  const seesAllRows = client.rowLevelSecurity === undefined || bypassesPolicies(caller)
  return seesAllRows && rightsOf(caller).may({ schema, table, action: 'read' })
}

/** A key that may read the schema sees all dependents, every other key those of the tables that it may read. */
function withVisibleDependents(caller: GatewayCaller, { details, hint, cause }: Failure): Failure {
  const all = details?.dependents as readonly Dependent[] // as drivers write it
  const rights = rightsOf(caller)
  const isVisible = ({ schema_name: schema, table_name: table }: Dependent) =>
    hasRight(caller, 'management.read') ||
    (schema !== null && table !== null && rights.may({ schema, table, action: 'read' }))
  const dependents = all.filter(isVisible)
  return fail('object_in_use', {
    ...(hint !== undefined && { hint }),
    details: { dependents, hidden_dependents: all.length - dependents.length },
    cause,
  })
}
