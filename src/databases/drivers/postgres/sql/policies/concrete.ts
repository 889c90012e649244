import type { RowLevelSecurity } from '#databases/drivers/driver.ts'
import { newName } from '#databases/drivers/postgres/sql/ddl/names.ts'
import { policyExpression } from '#databases/drivers/postgres/sql/policies/expression.ts'
import type { MarkedPolicy } from '#databases/drivers/postgres/sql/policies/mark.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'
import { fail } from '#databases/failures.ts'
import type { Catalogue, Column, Table } from '#databases/plan/catalogue.ts'

export const COMMANDS = ['select', 'insert', 'update', 'delete'] as const
type Command = (typeof COMMANDS)[number]

/** A policy as CREATE POLICY takes it. */
export type ConcretePolicy = {
  readonly name: string
  readonly command: Command | 'all'
  readonly roles: readonly string[]
  readonly using: string | undefined
  readonly check: string | undefined
  readonly isRestrictive?: boolean
  /** The column that gets a claim as its default. */
  readonly owned?: { readonly column: string; readonly fallback: string }
}

/** A policy to create, with its definition in the request. */
export type NewPolicy = ConcretePolicy & { readonly asked: MarkedPolicy }

/** Names of the presets' policies begin so, and no others do. */
const OF_PRESETS = 'gatehouse_'

type Target = {
  readonly table: Table
  readonly catalogue: Catalogue
  readonly roles: RowLevelSecurity
  /** Names of policies that were changed in the database: they are read back with their expressions, also those of presets. */
  readonly changed: ReadonlySet<string>
  /** Names of the policies that stay. */
  readonly taken: ReadonlySet<string>
}

export async function concretePolicies(
  policies: readonly MarkedPolicy[],
  target: Target,
): Promise<readonly NewPolicy[]> {
  const concrete: NewPolicy[] = []
  for (const [index, policy] of policies.entries()) {
    const written =
      'preset' in policy ? ofPreset(policy, target) : await ownPolicy(policy, `policies[${index}]`, target)
    concrete.push({ ...written, asked: policy })
  }
  const names = concrete.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) < index)
  if (twice !== undefined) throw refusal('policies', `${twice} is given twice`)
  requireOneValue(concrete)
  return concrete
}

function requireOneValue(policies: readonly ConcretePolicy[]): void {
  const values = new Map<string, string>()
  for (const { owned } of policies) {
    if (owned === undefined) continue
    const other = values.get(owned.column)
    if (other !== undefined && other !== owned.fallback)
      throw refusal(
        'policies.column',
        `Column ${owned.column} holds the id of the user or of the organization`,
      )
    values.set(owned.column, owned.fallback)
  }
}

type Preset = Extract<MarkedPolicy, { preset: string }>

function ofPreset(policy: Preset, target: Target): ConcretePolicy {
  const name = freeName(`${OF_PRESETS}${policy.preset}`, target.taken)
  const { anonymousRole, signedInRole } = target.roles
  switch (policy.preset) {
    case 'owner':
      return ofClaim(name, 'user_id', { ...target, column: policy.column })
    case 'organization':
      return ofClaim(name, 'organization_id', { ...target, column: policy.column })
    case 'insert_only_as_self':
      return asSelf(name, { ...target, column: policy.column })
    case 'public_read':
      return readable(name, [anonymousRole, signedInRole])
    case 'signed_in_read':
      return readable(name, [signedInRole])
  }
}

/** Another client of the same database may have set the same preset for its callers. */
function freeName(name: string, taken: ReadonlySet<string>): string {
  for (let number = 2, free = name; ; number++) {
    if (!taken.has(free)) return free
    free = `${name}_${number}`
  }
}

const readable = (name: string, roles: readonly string[]): ConcretePolicy => ({
  name,
  command: 'select',
  roles,
  using: 'true',
  check: undefined,
})

/** Rows whose column has the claim, for everything that a signed-in user does. */
function ofClaim(
  name: string,
  claim: 'user_id' | 'organization_id',
  { table, roles, column }: Target & { readonly column: string },
): ConcretePolicy {
  const found = table.columns.get(column)
  if (found === undefined)
    throw fail('unknown_column', {
      message: `The table has no column ${column}`.slice(0, 100),
      hint: `Add it first: "${column}" of type ${roles.textClaims?.includes(claim) ? 'text' : 'uuid'}, which holds the ${claim} of the session.`.slice(
        0,
        200,
      ),
      details: { column: column.slice(0, 63) },
    })
  const type = CLAIM_TYPES.get(found.base)
  if (type === undefined || !found.writable)
    throw refusal(
      'policies.column',
      `Column ${column} holds the ${claim} of the session, so it is a uuid or text`,
    )
  if (type === 'uuid' && roles.textClaims?.includes(claim))
    throw refusal(
      'policies.column',
      `Column ${column} is a uuid, and issuers of this client choose the ${claim} themselves: change its type to text`,
    )
  requireRoom(found, claim)
  const value = `(nullif(pg_catalog.current_setting('request.claims', true), '')::pg_catalog.json operator(pg_catalog.->>) '${claim}')::pg_catalog.${type}`
  // In a subquery it is computed once a statement, not once a row.
  const using = `${quoteName(column)} operator(pg_catalog.=) (select ${value})`
  return {
    name,
    command: 'all',
    roles: [roles.signedInRole],
    using,
    check: using,
    owned: { column, fallback: value },
  }
}

/** Restrictive, and for both roles, so that no other policy of the table lets rows of another user in. */
function asSelf(name: string, target: Target & { readonly column: string }): ConcretePolicy {
  const { anonymousRole, signedInRole } = target.roles
  return {
    ...ofClaim(name, 'user_id', target),
    command: 'insert',
    roles: [anonymousRole, signedInRole],
    using: undefined,
    isRestrictive: true,
  }
}

/** Types of a column with ids of users, by the name of its base type. */
const CLAIM_TYPES: ReadonlyMap<string, string> = new Map([
  ['uuid', 'uuid'],
  ['text', 'text'],
  ['varchar', 'text'],
])

/** In a column that is too narrow for an id, every insert would fail. */
function requireRoom({ name, type }: Column, claim: string): void {
  const length = /^character varying\((\d+)\)$/.exec(type)?.[1]
  if (length !== undefined && Number(length) < ID_LENGTH)
    throw refusal(
      'policies.column',
      `Column ${name} holds ${length} characters, and the ${claim} of the session has ${ID_LENGTH}: change its type to uuid`,
    )
}

/** Characters of a UUID. */
const ID_LENGTH = 36

type Own = Exclude<MarkedPolicy, { preset: string }>

async function ownPolicy(policy: Own, field: string, target: Target): Promise<ConcretePolicy> {
  const { name, command, roles } = policy
  newName(name, `${field}.name`)
  if (name.startsWith(OF_PRESETS) && !target.changed.has(name))
    throw refusal(`${field}.name`, `Names with ${OF_PRESETS} are those of presets`)
  const { anonymousRole, signedInRole } = target.roles
  if (roles.some((role) => role !== anonymousRole && role !== signedInRole))
    throw refusal(`${field}.roles`, `The roles of callers are ${anonymousRole} and ${signedInRole}`)
  requireParts(policy, field)
  const written = (part: 'using' | 'check') =>
    policy[part] === undefined
      ? undefined
      : policyExpression(policy[part], { ...target, field: `${field}.${part}` })
  const using = await written('using')
  const check = await written('check')
  return { name, command, roles: [...new Set(roles)], using, check }
}

/** A missing expression would be no condition at all, so it is asked for. */
function requireParts({ command, using, check }: Own, field: string): void {
  const [takesUsing, takesCheck] = [command !== 'insert', command !== 'select' && command !== 'delete']
  if (takesUsing && using === undefined)
    throw refusal(`${field}.using`, `A policy for ${command} needs using`)
  if (!takesUsing && check === undefined) throw refusal(`${field}.check`, 'A policy for insert needs check')
  if (!takesUsing && using !== undefined)
    throw refusal(`${field}.using`, 'A policy for insert has only check: there is no row yet')
  if (!takesCheck && check !== undefined)
    throw refusal(`${field}.check`, `A policy for ${command} has only using: it writes no row`)
}

const refusal = (field: string, hint: string) => fail('invalid_policy', { hint, details: { field } })

type Permission = Pick<ConcretePolicy, 'command' | 'roles' | 'isRestrictive'>

/** The commands that policies for this role allow. */
export const commandsOf = (policies: readonly Permission[], role: string) =>
  COMMANDS.filter((command) =>
    policies.some(
      (policy) =>
        policy.isRestrictive !== true &&
        policy.roles.includes(role) &&
        (policy.command === 'all' || policy.command === command),
    ),
  )
