import type { PolicyDefinition, TableSecurity } from '#databases/drivers/management.ts'
import {
  askedPolicy,
  type MarkedPolicy,
  markOf,
  type Self,
} from '#databases/drivers/postgres/sql/policies/mark.ts'
import { replacedDefaults } from '#databases/drivers/postgres/sql/policies/preset-defaults.ts'
import type { SecurityState, StoredPolicy } from '#databases/drivers/postgres/sql/policies/state.ts'

/** Policies as they were set, those that others have made, defaults that presets have replaced, and what the roles of callers may do. */
export function describeSecurity(state: SecurityState): TableSecurity {
  const { enabled, policies, rights } = state
  const marked = policies.map((stored) => ({ stored, mark: markOf(stored) }))
  return {
    enabled,
    policies: joined(
      marked.flatMap(({ stored, mark }) =>
        mark === undefined ? [] : [askedPolicy(stored, mark) ?? asStored(stored)],
      ),
    ),
    otherPolicies: marked.flatMap(({ stored, mark }) => {
      if (mark !== undefined) return []
      const { name, command, permissive, roles, using, check } = stored
      return [{ name, command, permissive, roles, using, check }]
    }),
    replacedDefaults: replacedDefaults(state),
    grants: rights.map(({ role, privileges }) => ({ role, privileges })),
  }
}

/** `insert_only_as_self` is a member of its preset. */
function joined(policies: readonly (MarkedPolicy | PolicyDefinition)[]): PolicyDefinition[] {
  const self = policies.flatMap((policy) => (isSelf(policy) ? [policy.column] : []))[0]
  return policies.flatMap((policy): PolicyDefinition[] => {
    if (isSelf(policy)) return []
    const isWithSelf = self !== undefined && 'preset' in policy && policy.preset === 'organization'
    return [isWithSelf ? { ...policy, insert_only_as_self: self } : policy]
  })
}

const isSelf = (policy: MarkedPolicy | PolicyDefinition): policy is Self =>
  'preset' in policy && policy.preset === 'insert_only_as_self'

/** Names of policies that were changed in the database after they were set. */
export const changedPolicies = ({ policies }: SecurityState): ReadonlySet<string> =>
  new Set(
    policies.flatMap((stored) => {
      const mark = markOf(stored)
      return mark !== undefined && askedPolicy(stored, mark) === undefined ? [stored.name] : []
    }),
  )

/** Whether it is the policy of a preset, with the expression that the preset gave it. */
export function isIntactPreset(stored: StoredPolicy): boolean {
  const mark = markOf(stored)
  return mark !== undefined && 'preset' in mark.policy && askedPolicy(stored, mark) !== undefined
}

/** It was changed in the database after it was set. */
const asStored = ({ name, command, roles, using, check }: StoredPolicy): PolicyDefinition => ({
  name,
  command,
  roles,
  ...(using !== null && { using }),
  ...(check !== null && { check }),
})
