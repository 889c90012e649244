import { act } from '#identity/act.ts'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { UUID } from '#kernel/random.ts'
import { bySession, type Caller } from '../door/access.ts'
import { fail } from '../errors.ts'
import { isMemberPermitted, type OrganizationPermissions } from './roles.ts'
import { findMembership, type Membership, type OrganizationKey, type OrganizationLock } from './store.ts'

/** An organization as requests name it. Without a name it is the active one. */
export type NamedOrganization = {
  readonly organizationId?: string | undefined
  readonly organizationSlug?: string | undefined
}

/** The organization that the request names, else the active one; undefined without either. */
export function keyOf(
  { session }: Pick<Caller, 'session'>,
  { organizationId, organizationSlug }: NamedOrganization,
): OrganizationKey | undefined {
  if (organizationId !== undefined) return { id: organizationId }
  if (organizationSlug !== undefined) return { slug: organizationSlug }
  return session.activeOrganizationId === null ? undefined : { id: session.activeOrganizationId }
}

export function expectKey(caller: Pick<Caller, 'session'>, named: NamedOrganization): OrganizationKey {
  const key = keyOf(caller, named)
  if (key === undefined) throw fail('NO_ACTIVE_ORGANIZATION')
  return key
}

/** The caller's place in an organization. An unknown organization and one of others are the same failure. */
export async function expectMembership(
  kernel: Kernel,
  userId: string,
  key: OrganizationKey,
  lock?: OrganizationLock,
): Promise<Membership> {
  const isNamed = !('id' in key) || UUID.test(key.id)
  const found = isNamed ? await findMembership(kernel, userId, key, lock) : undefined
  if (found === undefined) throw fail('USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION')
  return found
}

/** The code of a missing permission. */
type Refusal = Extract<Parameters<typeof fail>[0], `YOU_ARE_NOT_ALLOWED_TO_${string}`>

export function expectPermission(
  kernel: Kernel,
  { member }: Membership,
  asked: OrganizationPermissions,
  refusal: Refusal,
): void {
  if (!isMemberPermitted(kernel, member.role, asked)) throw fail(refusal)
}

type Acting = {
  readonly key: OrganizationKey
  /** Default: the lock of a verb that changes the organization, its members or its invitations. */
  readonly lock?: OrganizationLock
  /** Ids of other users whose sessions or memberships the work changes. */
  readonly others?: readonly string[]
}

/**
 * Runs the work in a transaction in which the caller's session is alive and the caller is a member, until its end.
 *
 * Every transaction on organizations locks in one order, which excludes deadlocks: first the rows of all users concerned, by id; then
 * the rows of organizations, by id; then members, invitations and sessions. The transaction that holds an organization's row decides
 * alone about its roles, owners, seats and invitations (decision 41).
 */
export const actInOrganization = <T>(
  kernel: Kernel,
  caller: Caller,
  { key, lock = 'no key update', others = [] }: Acting,
  work: (kernel: Kernel, membership: Membership, user: User) => Promise<T>,
): Promise<T> =>
  act(kernel, { ...bySession(caller), others }, async (kernel, { user }) =>
    work(kernel, await expectMembership(kernel, user.id, key, lock), user),
  )
