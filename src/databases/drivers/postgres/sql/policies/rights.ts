import type { RowLevelSecurity } from '#databases/drivers/driver.ts'
import {
  COMMANDS,
  type ConcretePolicy,
  commandsOf,
} from '#databases/drivers/postgres/sql/policies/concrete.ts'
import type { SecurityState, StoredPolicy } from '#databases/drivers/postgres/sql/policies/state.ts'
import { tableText } from '#databases/drivers/postgres/sql/sql-builder.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'
import { fail } from '#databases/failures.ts'
import type { Table } from '#databases/plan/catalogue.ts'

type RightsChange = {
  readonly table: Table
  readonly roles: RowLevelSecurity
  readonly isEnabled: boolean
  readonly policies: readonly ConcretePolicy[]
  /** Policies of others that stay. */
  readonly kept: readonly StoredPolicy[]
  readonly state: SecurityState
}

/** Exactly the rights that the policies need. A right for policies of others stays, if there was one. */
export const rightStatements = (change: RightsChange): readonly string[] =>
  [change.roles.anonymousRole, change.roles.signedInRole].flatMap((role) => statementsFor(role, change))

function statementsFor(role: string, change: RightsChange): readonly string[] {
  const { table, policies, state } = change
  const [name, to] = [tableText(table), quoteName(role)]
  const needed = commandsOf(policies, role)
  const given = [...needed, ...keptCommands(role, change)]
  const columns = updatableColumns(role, change)
  const ofTable = (command: string) => columns === undefined || command !== 'update'
  const granted = needed.filter(ofTable)
  const lost = [...COMMANDS, 'truncate', 'references', 'trigger'].filter(
    (right) => !given.filter(ofTable).some((command) => command === right),
  )
  const hasSchema = state.rights.find((rights) => rights.role === role)?.hasSchema
  return [
    `revoke ${lost.length === 7 ? 'all' : lost.join(', ')} on table ${name} from ${to}`,
    ...(granted.length === 0 ? [] : [`grant ${granted.join(', ')} on table ${name} to ${to}`]),
    ...(columns === undefined || columns.length === 0
      ? []
      : [`grant update (${columns.map(quoteName).join(', ')}) on table ${name} to ${to}`]),
    ...(needed.length === 0 || hasSchema
      ? []
      : [`grant usage on schema ${quoteName(table.schema)} to ${to}`]),
    ...state.sequences.map((sequence) =>
      given.includes('insert')
        ? `grant usage on sequence ${sequence} to ${to}`
        : `revoke all on sequence ${sequence} from ${to}`,
    ),
  ]
}

/** The commands that policies of others allow and the role has a right to. */
function keptCommands(role: string, { isEnabled, kept, state }: RightsChange) {
  const held = heldBy(role, state)
  return isEnabled
    ? commandsOf(kept.map(forRole(role)), role).filter((command) => held.includes(command))
    : []
}

/** Whether policies that are not of this change allow callers anything. */
export const isInEffect = (change: RightsChange): boolean =>
  [change.roles.anonymousRole, change.roles.signedInRole].some(
    (role) => keptCommands(role, change).length > 0,
  )

const heldBy = (role: string, { rights }: SecurityState): readonly string[] =>
  rights.find((other) => other.role === role)?.privileges ?? []

/** A policy for PUBLIC also applies to the role. */
const forRole = (role: string) => (policy: StoredPolicy) =>
  policy.roles.includes('public') ? { ...policy, roles: [...policy.roles, role] } : policy

/** Policies outside this change that allow rows as soon as a role has the right that it gets by it. */
export const awakenedPolicies = ({ roles, policies, kept, state }: RightsChange): readonly string[] =>
  [roles.anonymousRole, roles.signedInRole].flatMap((role) => {
    const held = heldBy(role, state)
    const gained = commandsOf(policies, role).filter((command) => !held.includes(command))
    return kept
      .filter((policy) => policy.permissive)
      .filter((policy) =>
        commandsOf([forRole(role)(policy)], role).some((command) => gained.includes(command)),
      )
      .map(({ name }) => name)
  })

/** The columns with the right to update, where a policy fixes one column. Undefined: the right is to the table. */
function updatableColumns(role: string, change: RightsChange): readonly string[] | undefined {
  const { policies, state } = change
  const fixed = fixedColumn(policies)
  if (fixed === undefined) return undefined
  const held = state.rights.find((rights) => rights.role === role)?.updatable ?? []
  const isKept = keptCommands(role, change).includes('update')
  const columns = commandsOf(policies, role).includes('update') ? state.columns : isKept ? held : []
  return columns.filter((column) => column !== fixed)
}

const fixedColumn = (policies: readonly ConcretePolicy[]): string | undefined =>
  policies.find(({ isRestrictive }) => isRestrictive === true)?.owned?.column

/** A right that callers have through PUBLIC or another role would still change the column. */
export function requireFixed({ policies }: Pick<RightsChange, 'policies'>, made: SecurityState): void {
  const fixed = fixedColumn(policies)
  const open = made.rights.find(({ updatable }) => fixed !== undefined && updatable.includes(fixed))
  if (open === undefined) return
  throw fail('object_in_use', {
    message: `${open.role} could change column ${fixed}`,
    hint: `It has the right to update column ${fixed} through PUBLIC or another role: revoke it first.`,
    details: { role: open.role, column: fixed },
  })
}

/**
 * Without row-level security, every right of a role shows all rows: also a right of a role that is not one of this client's callers, as the
 * callers of another client of the same database.
 */
export function requireClosed(
  { isEnabled, state }: Pick<RightsChange, 'isEnabled' | 'state'>,
  made: SecurityState,
): void {
  if (isEnabled) return
  const open = [...made.rights, ...(state.enabled ? made.others : [])].find(
    ({ privileges }) => privileges.length > 0,
  )
  if (open === undefined) return
  throw fail('object_in_use', {
    message: `${open.role} would see every row of the table`,
    hint: `It has rights on the table (${open.privileges.join(', ')}), perhaps through PUBLIC or another role: revoke them first.`,
    details: { role: open.role, privileges: open.privileges },
  })
}
