import type { RowLevelSecurity } from '#databases/drivers/driver.ts'
import type { RunQuery, SecurityDefinition, SecurityStatements } from '#databases/drivers/management.ts'
import { OF_EXPRESSIONS, refusalAs } from '#databases/drivers/postgres/sql/ddl/explanations.ts'
import {
  type ConcretePolicy,
  commandsOf,
  type NewPolicy,
} from '#databases/drivers/postgres/sql/policies/concrete.ts'
import { describeSecurity, isIntactPreset } from '#databases/drivers/postgres/sql/policies/describe.ts'
import { markOf, markText } from '#databases/drivers/postgres/sql/policies/mark.ts'
import {
  defaultStatements,
  markedDefault,
  requireRestorable,
} from '#databases/drivers/postgres/sql/policies/preset-defaults.ts'
import {
  awakenedPolicies,
  isInEffect,
  requireClosed,
  requireFixed,
  rightStatements,
} from '#databases/drivers/postgres/sql/policies/rights.ts'
import {
  type SecurityState,
  STATE_SQL,
  type StoredPolicy,
  stateValues,
} from '#databases/drivers/postgres/sql/policies/state.ts'
import { tableText } from '#databases/drivers/postgres/sql/sql-builder.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'
import { fail } from '#databases/failures.ts'
import type { Table } from '#databases/plan/catalogue.ts'

type SecurityChange = {
  readonly table: Table
  readonly roles: RowLevelSecurity
  readonly asked: Pick<SecurityDefinition, 'enabled' | 'replace'>
  readonly policies: readonly NewPolicy[]
  /** The state for which the statements are written. */
  readonly state: SecurityState
}

/** Sets row-level security of a table as a whole: policies, rights of the two roles, and defaults of columns with a claim. */
export function setSecurity(change: SecurityChange): SecurityStatements {
  const { table, policies, asked, state } = change
  const name = tableText(table)
  const isRemoved = (policy: StoredPolicy) => asked.replace || markOf(policy) !== undefined
  const removed = state.policies.filter(isRemoved)
  const kept = state.policies.filter((policy) => !isRemoved(policy))
  const rights = { ...change, isEnabled: asked.enabled, kept }
  const defaults = { name, policies, state }
  // Empty until `verify` has run.
  const result: SecurityStatements['result'] = {}
  return {
    statements: [
      ...removed.map((policy) => `drop policy ${quoteName(policy.name)} on ${name}`),
      ...defaultStatements(defaults),
      ...policies.map((policy) => createText(name, policy)),
      `alter table ${name} ${asked.enabled ? 'enable' : 'disable'} row level security`,
      ...rightStatements(rights),
    ],
    async check(query) {
      await lockUnchanged(query, change)
      await requireRestorable(query, defaults)
    },
    async verify(query) {
      const made = await presentState(query, change)
      await requireHarmless(query, change)
      requireClosed(rights, made)
      requireFixed(rights, made)
      await requireFinite(query, change)
      await markPolicies(query, change, made)
      result.security = describeSecurity(await presentState(query, change))
    },
    explain: explainPolicy,
    lostExpressions: removed
      .filter((policy) => !isIntactPreset(policy) || (isLifted(policy, change) && isInEffect(rights)))
      .map((policy) => policy.name),
    awakened: awakenedPolicies(rights),
    result,
  }
}

/** Locks the table, which must be as it was when the statements were written. */
async function lockUnchanged(query: RunQuery, change: SecurityChange): Promise<void> {
  const lock = `lock table ${tableText(change.table)} in access exclusive mode`
  await query(lock, []).catch((error: unknown) => {
    throw hasState(error, UNDEFINED_TABLE) ? fail('table_not_found', { cause: error }) : error
  })
  const present = await presentState(query, change)
  if (JSON.stringify(present) !== JSON.stringify(change.state)) throw fail('write_conflict')
}

/** Writes the definition of each policy, as it was asked for, into its comment. `made`: the state with the new policies. */
async function markPolicies(
  query: RunQuery,
  { table, policies, state }: SecurityChange,
  made: SecurityState,
): Promise<void> {
  for (const policy of policies) {
    const stored = made.policies.find(({ name }) => name === policy.name)
    const mark = markText(policy.asked, stored, markedDefault(policy, { before: state, made }))
    await query(`comment on policy ${quoteName(policy.name)} on ${tableText(table)} is ${mark}`, [])
  }
}

/** A restriction that is not set again. */
const isLifted = ({ permissive, columns }: StoredPolicy, { policies }: SecurityChange): boolean =>
  !permissive &&
  !policies.some(({ isRestrictive, owned }) => isRestrictive === true && owned?.column === columns[0]?.name)

async function presentState(query: RunQuery, { table, roles }: SecurityChange): Promise<SecurityState> {
  const [row] = await query<{ state: SecurityState }>(STATE_SQL, stateValues(table, roles))
  if (row === undefined) throw fail('write_conflict')
  return row.state
}

function createText(
  table: string,
  { name, command, roles, using, check, isRestrictive }: ConcretePolicy,
): string {
  const kind = isRestrictive === true ? ' as restrictive' : ''
  const parts = [
    `create policy ${quoteName(name)} on ${table}${kind} for ${command} to ${roles.map(quoteName).join(', ')}`,
    ...(using === undefined ? [] : [`using (${using})`]),
    ...(check === undefined ? [] : [`with check (${check})`]),
  ]
  return parts.join(' ')
}

const hasState = (error: unknown, state: string): boolean =>
  error instanceof Error && 'code' in error && error.code === state

/** undefined_table: it was dropped or renamed meanwhile. */
const UNDEFINED_TABLE = '42P01'

type UsedFunction = { readonly name: string }

/**
 * Functions of the stored policies that may do more than compute. `table.name` calls a function where there is no such column, and names
 * are judged by the server's own tree of the policy.
 */
const USED_SQL = `
select distinct concat(n.nspname, '.', p.proname) as name
from pg_policy y
cross join lateral regexp_matches(concat(y.polqual::text, ' ', y.polwithcheck::text), ':(?:funcid|opfuncid|aggfnoid|winfnoid) ([0-9]+)', 'g') used
join pg_proc p on p.oid = used[1]::oid join pg_namespace n on n.oid = p.pronamespace
where y.polrelid = $1::text::oid and y.polname = any ($2::name[]) and (
  p.provolatile = 'v' or n.nspname <> 'pg_catalog' and not exists (
    select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'))`

async function requireHarmless(query: RunQuery, { policies, state }: SecurityChange): Promise<void> {
  const names = policies.map(({ name }) => name)
  const [found] = await query<UsedFunction>(USED_SQL, [state.oid, names])
  if (found !== undefined)
    throw fail('invalid_policy', { hint: `The function ${found.name} is not allowed in a policy` })
}

/** Policies of two tables that read each other fail in every statement of callers. Only a plan of the server finds it. */
async function requireFinite(query: RunQuery, { table, roles, policies }: SecurityChange): Promise<void> {
  const readers = [roles.anonymousRole, roles.signedInRole].filter((role) =>
    commandsOf(policies, role).includes('select'),
  )
  for (const role of readers) {
    await query('savepoint planning', [])
    try {
      await query(`select set_config('role', $1, true), set_config('request.claims', '{}', true)`, [role])
      await query(`explain select from ${tableText(table)}`, [])
    } catch (error) {
      if (hasState(error, RECURSION))
        throw fail('invalid_policy', {
          hint: 'A table that the policy reads has a policy that reads this table: they would never end',
        })
      // Rights on other tables may still be given.
    }
    await query('rollback to savepoint planning', [])
  }
}

/** invalid_object_definition */
const RECURSION = '42P17'

/** The server's words are about the definition only. */
const explainPolicy = refusalAs('invalid_policy', OF_EXPRESSIONS, ({ cause }) =>
  cause instanceof Error ? cause.message : undefined,
)
