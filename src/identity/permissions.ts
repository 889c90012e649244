import type { Config } from '#kernel/config/config.ts'
import {
  ADMIN_ACTIONS,
  EVERY_CLIENT,
  OPERATOR_RIGHTS,
  type OperatorRight,
} from '#kernel/config/sections/auth-admin.ts'
import { coversRight, EVERY_RIGHT } from '#kernel/rights.ts'
import type { User } from './users.ts'

/** Resource → actions: what a role allows, and what is asked for. */
export type Permissions = Readonly<Record<string, readonly string[]>>

/** The permissions that a verb on users may require. */
export type AdminPermissions = {
  readonly [Resource in keyof typeof ADMIN_ACTIONS]?: readonly (typeof ADMIN_ACTIONS)[Resource][number][]
}

type Subject = Pick<User, 'id' | 'role'> & Partial<Pick<User, 'isAnonymous'>>
type Configured = { readonly config: Config }

/** Several roles are joined by commas. */
export const splitRoles = (role: string): readonly string[] => role.split(',')

/** The actions that a role allows, the operator's routes among them, and its rights on the gateway by client. */
type Role = { readonly actions: Permissions; readonly gateway: Readonly<Record<string, readonly string[]>> }

const ADMIN: Role = {
  actions: { ...ADMIN_ACTIONS, operator: OPERATOR_RIGHTS },
  gateway: { [EVERY_CLIENT]: EVERY_RIGHT },
}
const USER: Role = { actions: {}, gateway: {} }

/** The role of this name; undefined when the configuration has none. */
function findRole({ config }: Configured, name: string): Role | undefined {
  if (name === 'admin') return ADMIN
  if (name === 'user') return USER
  const { roles } = config.auth.admin
  const configured = Object.hasOwn(roles, name) ? roles[name] : undefined
  if (configured === undefined) return undefined
  const { gateway, ...actions } = configured
  const audit = actions.operator.includes('audit') ? ADMIN_ACTIONS.audit : actions.audit
  return { actions: { ...actions, audit }, gateway }
}

/** The names of all roles. */
export const roleNames = ({ config }: Configured): readonly string[] => [
  'user',
  'admin',
  ...Object.keys(config.auth.admin.roles),
]

/** Role names as they are stored, each once. Undefined when one of them does not exist. */
export function roleFrom(configured: Configured, names: readonly string[]): string | undefined {
  const roles = [...new Set(names.flatMap(splitRoles).map((name) => name.trim()))]
  const exist = roles.length > 0 && roles.every((name) => findRole(configured, name) !== undefined)
  return exist ? roles.join(',') : undefined
}

/** Whether the user has the role `admin`, or is in `auth.admin.user_ids`. An anonymous user is no admin. */
export const isAdmin = ({ config }: Configured, { id, role, isAnonymous = false }: Subject): boolean =>
  !isAnonymous && (config.auth.admin.user_ids.includes(id) || splitRoles(role).includes('admin'))

/** The roles that count for this user, joined by commas: `admin` is one of them for `auth.admin.user_ids`. */
export function effectiveRole(configured: Configured, user: Subject): string {
  const roles = splitRoles(user.role)
  if (!isAdmin(configured, user) || roles.includes('admin')) return user.role
  return [...roles.filter((role) => role !== 'user'), 'admin'].join(',')
}

const rolesOf = (configured: Configured, user: Subject): readonly Role[] =>
  splitRoles(effectiveRole(configured, user))
    .map((name) => findRole(configured, name))
    .filter((role) => role !== undefined)

/** Whether one role of the user allows all of this. The only function that decides what an admin may do. */
export const isPermitted = (configured: Configured, user: Subject, asked: AdminPermissions): boolean =>
  rolesOf(configured, user).some(({ actions }) => allows(actions, asked))

/** Whether the role allows every action. Unknown resources and actions are not allowed, and neither is nothing. */
export function allows(role: Permissions, asked: Permissions): boolean {
  const resources = Object.entries(asked)
  return (
    resources.length > 0 &&
    resources.every(
      ([resource, actions]) =>
        actions.length > 0 &&
        Object.hasOwn(role, resource) &&
        actions.every((action) => role[resource]?.includes(action)),
    )
  )
}

/** Whether the first has every permission of the second. Nobody acts on a user, or gives a role, with more than their own. */
export function coversPermissions(configured: Configured, one: Subject, other: Subject): boolean {
  const held = new Set(actionsOf(configured, one))
  return (
    actionsOf(configured, other).every((action) => held.has(action)) &&
    coversGateway(gatewayRightsOf(configured, one), gatewayRightsOf(configured, other))
  )
}

/** Whether the user may do anything that a plain user may not. */
export const hasPermissions = (configured: Configured, user: Subject): boolean =>
  actionsOf(configured, user).length > 0 || gatewayRightsOf(configured, user).size > 0

/** All that the user's roles allow together: actions by resource, and rights on the gateway by client. */
export function permissionsOf(configured: Configured, user: Subject) {
  const permissions: Record<string, string[]> = {}
  for (const { actions } of rolesOf(configured, user))
    for (const [resource, allowed] of Object.entries(actions))
      if (allowed.length > 0)
        permissions[resource] = [...new Set([...(permissions[resource] ?? []), ...allowed])]
  return { permissions, gateway: Object.fromEntries(gatewayRightsOf(configured, user)) }
}

const actionsOf = (configured: Configured, user: Subject): readonly string[] =>
  rolesOf(configured, user).flatMap(({ actions }) => actionsIn(actions))

/** `user:ban`, for each action. */
export const actionsIn = (permissions: Permissions): readonly string[] =>
  Object.entries(permissions).flatMap(([resource, actions]) =>
    actions.map((action) => `${resource}:${action}`),
  )

/** `user: ban, delete`, for the access table. */
export const permissionText = (permissions: Permissions): string =>
  Object.entries(permissions)
    .map(([resource, actions]) => `${resource}: ${actions.join(', ')}`)
    .join('; ')

/** The parts of the operator's routes that the user's roles open. */
export const operatorRightsOf = (configured: Configured, user: Subject): readonly OperatorRight[] => {
  const held = new Set(actionsOf(configured, user))
  return OPERATOR_RIGHTS.filter((right) => held.has(`operator:${right}`))
}

/** Rights on the gateway by client; those under `*` are for every client. */
export type GatewayRights = ReadonlyMap<string, readonly string[]>

/** The rights of the user's roles together. */
export function gatewayRightsOf(configured: Configured, user: Subject): GatewayRights {
  const all = new Map<string, readonly string[]>()
  for (const { gateway } of rolesOf(configured, user))
    for (const [client, rights] of Object.entries(gateway))
      if (rights.length > 0) all.set(client, [...(all.get(client) ?? []), ...rights])
  return all
}

/** The rights that hold on this client. */
export const rightsOnClient = (rights: GatewayRights, client: string): readonly string[] =>
  [...new Set([EVERY_CLIENT, client])].flatMap((name) => rights.get(name) ?? [])

const coversGateway = (held: GatewayRights, other: GatewayRights): boolean =>
  [...other].every(([client, rights]) =>
    rights.every((right) => coversRight(rightsOnClient(held, client), right)),
  )
