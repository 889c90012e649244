import type {
  PolicyDefinition,
  PolicyPreset,
  TablePolicies,
  TableSecurity,
} from '#databases/drivers/management.ts'
import type { Table } from '#databases/plan/catalogue.ts'
import type { TableName } from '#databases/request/request.ts'
import type { Failure } from '#kernel/errors.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { fail } from '../errors.ts'
import { rowLevelSecurityOff } from '../row-level-security-off.ts'
import { type Changer, type EmitChange, managementOf, runAudited } from './change.ts'
import { requireBypassRight, requireExpressionRight, requirePolicyRights } from './policy-rights.ts'
import { findTable } from './tables.ts'

/** A policy of a body: a preset with its column, or a policy with expressions. */
type AskedPolicy = {
  readonly preset?: PolicyPreset
  readonly column?: string
  readonly insert_only_as_self?: string
  readonly name?: string
  readonly command?: Extract<PolicyDefinition, { name: string }>['command']
  readonly roles?: string[]
  readonly using?: string
  readonly check?: string
}

type AskedSecurity = {
  readonly enabled: boolean
  readonly policies?: readonly AskedPolicy[]
  readonly replace?: boolean
}

/** Sets the policies of a table as a whole. */
export async function setRowLevelSecurity(
  changer: Changer,
  { schema, table }: TableName,
  { enabled, policies: asked, replace = false }: AskedSecurity,
) {
  const { caller } = changer
  const ability = policiesOf(caller)
  const policies = readPolicies(enabled, asked)
  for (const policy of policies) requirePolicyRights(caller, { schema, table }, policy)
  const found = await findTable(caller, { schema, table })
  const definition = { enabled, policies, replace }
  const ddl = await ability.set(found, definition, await caller.backend.catalogue())
  if (ddl.lostExpressions.length > 0) requireExpressionRight(caller)
  if (ddl.awakened.length > 0) requireBypassRight(caller)
  const event = { table: `${schema}.${table}`, operations: ['row_level_security'] }
  const announce = (emit: EmitChange) => emit('schema_table_altered', event)
  await runAudited(changer, { operation: 'row_level_security', schema, object: table, announce }, ddl)
  const { security } = ddl.result
  if (security === undefined) throw new Error('A change of policies was committed without its result')
  return answerOf(found, security)
}

export async function readRowLevelSecurity(caller: GatewayCaller, { schema, table }: TableName) {
  const ability = policiesOf(caller)
  const found = await findTable(caller, { schema, table })
  return answerOf(found, await ability.read(found))
}

function policiesOf(caller: GatewayCaller): TablePolicies {
  const { policies } = managementOf(caller)
  if (policies !== undefined) return policies
  throw rowLevelSecurityOff(caller.client)
}

function readPolicies(enabled: boolean, asked: AskedSecurity['policies']): readonly PolicyDefinition[] {
  if (asked === undefined && enabled)
    throw fail('invalid_policy', {
      hint: 'With enabled: true, policies is required: it is the whole list, and [] removes every policy',
      details: { field: 'policies' },
    })
  return asked?.map(readPolicy) ?? []
}

function readPolicy(asked: AskedPolicy, index: number): PolicyDefinition {
  const { preset, ...others } = asked
  const refuse = (hint: string) => fail('invalid_policy', { hint, details: { field: `policies[${index}]` } })
  return preset === undefined ? readOwn(others, refuse) : readPreset(preset, others, refuse)
}

type Own = Omit<AskedPolicy, 'preset'>
type Refuse = (hint: string) => Failure

function readOwn(
  { column, insert_only_as_self: self, name, command, roles, using, check }: Own,
  refuse: Refuse,
): PolicyDefinition {
  if (name === undefined || command === undefined || roles === undefined)
    throw refuse('A policy is a preset, or has name, command and roles')
  if (column !== undefined) throw refuse('Only a preset has a column')
  if (self !== undefined) throw refuse(ONLY_ORGANIZATION)
  return {
    name,
    command,
    roles,
    ...(using !== undefined && { using }),
    ...(check !== undefined && { check }),
  }
}

function readPreset(
  preset: PolicyPreset,
  { column, insert_only_as_self: self, ...others }: Own,
  refuse: Refuse,
): PolicyDefinition {
  const [other] = Object.keys(others)
  if (other !== undefined) throw refuse(`A preset has no ${other}`)
  if (self !== undefined && preset !== 'organization') throw refuse(ONLY_ORGANIZATION)
  const named = column !== undefined && { column }
  if (preset === 'owner') return { preset, ...named }
  if (preset === 'organization')
    return { preset, ...named, ...(self !== undefined && { insert_only_as_self: self }) }
  if (column !== undefined) throw refuse(`The preset ${preset} has no column`)
  return { preset }
}

const ONLY_ORGANIZATION = 'Only the preset organization has insert_only_as_self'

const answerOf = (
  { schema, name }: Table,
  { otherPolicies, replacedDefaults, ...security }: TableSecurity,
) => ({
  schema_name: schema,
  table_name: name,
  ...security,
  other_policies: otherPolicies,
  replaced_defaults: replacedDefaults,
})
