import type { RowLevelSecurity } from '#databases/drivers/driver.ts'
import type { PolicyDefinition, TablePolicies } from '#databases/drivers/management.ts'
import type { Runner } from '#databases/drivers/postgres/runner.ts'
import { existingTable } from '#databases/drivers/postgres/sql/ddl/names.ts'
import { concretePolicies } from '#databases/drivers/postgres/sql/policies/concrete.ts'
import { changedPolicies, describeSecurity } from '#databases/drivers/postgres/sql/policies/describe.ts'
import { type MarkedPolicy, markOf } from '#databases/drivers/postgres/sql/policies/mark.ts'
import { requireExpressions } from '#databases/drivers/postgres/sql/policies/preset-defaults.ts'
import { setSecurity } from '#databases/drivers/postgres/sql/policies/set.ts'
import { type SecurityState, STATE_SQL, stateValues } from '#databases/drivers/postgres/sql/policies/state.ts'
import { bind, createSql, tableText } from '#databases/drivers/postgres/sql/sql-builder.ts'
import { fail } from '#databases/failures.ts'
import type { Table } from '#databases/plan/catalogue.ts'

/** Row-level security of tables, set by the gateway (gateway.md 10). */
export function createTablePolicies(read: Runner['systemValue'], roles: RowLevelSecurity): TablePolicies {
  async function stateOf(table: Table): Promise<SecurityState> {
    existingTable(table)
    const sql = createSql(STATE_SQL)
    for (const value of stateValues(table, roles)) bind(sql, value)
    const state = (await read(sql)) as SecurityState | undefined // as the statement builds it
    if (state === undefined) throw fail('table_not_found')
    return state
  }

  return {
    read: async (table) => describeSecurity(await stateOf(table)),
    async set(table, given, catalogue) {
      const state = await stateOf(table)
      requireSettable(table, state)
      if (!given.enabled && given.policies.length > 0)
        throw fail('invalid_policy', {
          hint: 'With enabled: false callers lose all rights on the table, so there are no policies',
          details: { field: 'policies' },
        })
      const asked = [...given.policies.map(withColumn), ...given.policies.flatMap(asSelf)]
      const staying = state.policies.filter((policy) => !given.replace && markOf(policy) === undefined)
      const taken = new Set(staying.map(({ name }) => name))
      const target = { table, catalogue, roles, changed: changedPolicies(state), taken }
      const policies = await concretePolicies(asked, target)
      await requireExpressions({ name: tableText(table), policies, state })
      return setSecurity({ table, roles, asked: given, policies, state })
    },
  }
}

/** A policy is read back as it was set, with the column that it means. */
function withColumn(policy: PolicyDefinition): MarkedPolicy {
  if (!('preset' in policy)) return policy
  if (policy.preset === 'owner') return { preset: 'owner', column: policy.column ?? 'user_id' }
  if (policy.preset === 'organization')
    return { preset: 'organization', column: policy.column ?? 'organization_id' }
  return { preset: policy.preset }
}

const asSelf = (policy: PolicyDefinition): readonly MarkedPolicy[] =>
  'insert_only_as_self' in policy && policy.insert_only_as_self !== undefined
    ? [{ preset: 'insert_only_as_self', column: policy.insert_only_as_self }]
    : []

function requireSettable(
  { schema, name, kind }: Table,
  { isOwned, isInherited, rights }: SecurityState,
): void {
  const table = `${schema}.${name}`
  const details = { schema_name: schema, table_name: name }
  if (kind === 'partitioned table' || isInherited)
    throw fail('invalid_policy', {
      message: `${table} has partitions or inherits, and the policies of one such table do not apply to the others`,
      hint: 'Write these policies in SQL.',
      details,
    })
  if (!isOwned)
    throw fail('permission_denied', {
      message: `${table} belongs to another role than that of the client`,
      hint: 'Only the owner of a table sets its policies.',
      details,
    })
  const missing = rights.find(({ exists }) => !exists)
  if (missing !== undefined) throw fail('roles_unavailable', { hint: `There is no role ${missing.role}` })
}
