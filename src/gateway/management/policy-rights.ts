import type { PolicyDefinition, PolicyPreset } from '#databases/drivers/management.ts'
import type { Action } from '#databases/plan/rights.ts'
import type { TableName } from '#databases/request/request.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { requireRight, rightsOf } from '../caller/caller-rights.ts'

/** A preset gives rows to others, so its key must be able to do the same with them. */
export function requirePolicyRights(caller: GatewayCaller, at: TableName, policy: PolicyDefinition): void {
  if (!('preset' in policy)) {
    requireExpressionRight(caller)
    return
  }
  rightsOf(caller).require(GIVEN_BY[policy.preset].map((action) => ({ ...at, action })))
  if (SHOWS_ALL_ROWS.has(policy.preset)) requireBypassRight(caller)
}

const GIVEN_BY: Readonly<Record<PolicyPreset, readonly Action[]>> = {
  owner: ['read', 'write', 'delete'],
  organization: ['read', 'write', 'delete'],
  public_read: ['read'],
  signed_in_read: ['read'],
}
const SHOWS_ALL_ROWS: ReadonlySet<PolicyPreset> = new Set(['public_read', 'signed_in_read'])

/** To write a policy with an expression and to remove one: it may read other tables, as a function may. */
export const requireExpressionRight = (caller: GatewayCaller): void =>
  requireRight(caller, ['management.functions.write'])

/** To show rows that policies hide from the key. */
export const requireBypassRight = (caller: GatewayCaller): void =>
  requireRight(caller, ['gateway.bypass_row_level_security'])
