import { actionsIn, allows, type Permissions, splitRoles } from '#identity/permissions.ts'
import { hasProvenEmail, type User } from '#identity/users.ts'
import type { Config } from '#kernel/config/config.ts'
import { ORGANIZATION_ACTIONS } from '#kernel/config/sections/auth-organization.ts'
import { type AUTH_FAILURES, fail } from '../errors.ts'

/** The permissions that a verb on an organization may require. */
type OrganizationPermissions = {
  readonly [Resource in keyof typeof ORGANIZATION_ACTIONS]?: readonly (typeof ORGANIZATION_ACTIONS)[Resource][number][]
}

type Configured = { readonly config: Config }

export const OWNER = 'owner'

/** The permissions that a verb demands of a member, and the failure without them. */
export type Demand = {
  readonly permissions: OrganizationPermissions
  readonly refusal: keyof typeof AUTH_FAILURES
}

/** For the route, which documents it, and for the verb, which asks about the locked rows. The failures' names are better-auth's. */
export const TO = {
  UPDATE: {
    permissions: { organization: ['update'] },
    refusal: 'YOU_ARE_NOT_ALLOWED_TO_UPDATE_THIS_ORGANIZATION',
  },
  DELETE: {
    permissions: { organization: ['delete'] },
    refusal: 'YOU_ARE_NOT_ALLOWED_TO_DELETE_THIS_ORGANIZATION',
  },
  INVITE: {
    permissions: { invitation: ['create'] },
    refusal: 'YOU_ARE_NOT_ALLOWED_TO_INVITE_USERS_TO_THIS_ORGANIZATION',
  },
  CANCEL_INVITATION: {
    permissions: { invitation: ['cancel'] },
    refusal: 'YOU_ARE_NOT_ALLOWED_TO_CANCEL_THIS_INVITATION',
  },
  UPDATE_MEMBER: {
    permissions: { member: ['update'] },
    refusal: 'YOU_ARE_NOT_ALLOWED_TO_UPDATE_THIS_MEMBER',
  },
  REMOVE_MEMBER: {
    permissions: { member: ['delete'] },
    refusal: 'YOU_ARE_NOT_ALLOWED_TO_DELETE_THIS_MEMBER',
  },
} as const satisfies Readonly<Record<string, Demand>>

/** All refusals of acts in organizations by the place of the caller there. */
export const ORGANIZATION_REFUSALS: ReadonlySet<string> = new Set([
  'USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION',
  'YOU_ARE_NOT_ALLOWED_TO_CREATE_A_NEW_ORGANIZATION',
  'YOU_ARE_NOT_ALLOWED_TO_INVITE_USER_WITH_THIS_ROLE',
  ...Object.values(TO).map(({ refusal }) => refusal),
] as const satisfies readonly (keyof typeof AUTH_FAILURES)[])

/** Roles that exist without configuration. */
const BUILT_IN_ROLES: Readonly<Record<string, OrganizationPermissions>> = {
  [OWNER]: ORGANIZATION_ACTIONS,
  admin: { ...ORGANIZATION_ACTIONS, organization: ['update'] },
  member: {},
}

/** The role of this name; undefined when there is none. */
function findRole({ config }: Configured, name: string): Permissions | undefined {
  const { roles } = config.auth.organization
  if (Object.hasOwn(BUILT_IN_ROLES, name)) return BUILT_IN_ROLES[name]
  return Object.hasOwn(roles, name) ? roles[name] : undefined
}

export const isOwner = (held: string): boolean => splitRoles(held).includes(OWNER)

/** Whether one of the roles allows all of this. The only function that decides: the verbs and has-permission both ask it. */
export const isMemberPermitted = (configured: Configured, held: string, asked: Permissions): boolean =>
  splitRoles(held).some((name) => allows(findRole(configured, name) ?? {}, asked))

/**
 * Whether a member with the roles `held` may give the roles `other`, or change a member who has them. Only an owner touches owners, and
 * no member gives more than the own roles allow.
 */
export function coversRoles(configured: Configured, held: string, other: string): boolean {
  if (isOwner(held)) return true
  const allowed = new Set(actionsOf(configured, held))
  return !isOwner(other) && actionsOf(configured, other).every((action) => allowed.has(action))
}

/**
 * An account with an address that is not proven may be a stranger's, under the name of another person. So it gives no role that holds a
 * permission.
 */
export const mayGive = (configured: Configured, giver: Pick<User, 'emailProvenAt'>, role: string): boolean =>
  hasProvenEmail(giver) || actionsOf(configured, role).length === 0

export function expectMayGive(
  configured: Configured,
  giver: Pick<User, 'emailProvenAt'>,
  role: string,
): void {
  if (!mayGive(configured, giver, role)) throw fail('EMAIL_NOT_VERIFIED')
}

const actionsOf = (configured: Configured, held: string): readonly string[] =>
  splitRoles(held).flatMap((name) => actionsIn(findRole(configured, name) ?? {}))

/** The roles of a request in the form that is stored. */
export function acceptableRoles(configured: Configured, given: string | readonly string[]): string {
  const names = [given].flat().flatMap((text) => text.split(','))
  const roles = [...new Set(names.map((name) => name.trim()))]
  const unknown = roles.find((name) => findRole(configured, name) === undefined)
  if (unknown !== undefined || roles.length === 0) throw fail('ROLE_NOT_FOUND')
  return roles.join(',')
}
