import { act } from '#identity/act.ts'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { UUID } from '#kernel/random.ts'
import { bySession, type Caller } from '../door/access.ts'
import { fail } from '../errors.ts'
import { type Demand, isMemberPermitted } from './roles.ts'
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

export function expectPermission(
  kernel: Kernel,
  { member }: Membership,
  { permissions, refusal }: Demand,
): void {
  if (!isMemberPermitted(kernel, member.role, permissions)) throw fail(refusal)
}

type ActInOrganization = {
  readonly key: OrganizationKey
  /** Default: every member may. */
  readonly to?: Demand
  /** Default: the lock of a verb that changes the organization, its members or its invitations. */
  readonly lock?: OrganizationLock
  /** Ids of other users whose sessions or memberships the work changes. */
  readonly others?: readonly string[]
}

/**
 * Runs the work in a transaction in which the caller's session is alive and the caller is a member who may, until its end.
 *
 * Every transaction on organizations locks in one order, which excludes deadlocks: first the rows of all users concerned, by id; then
 * the rows of organizations, by id; then members, invitations and sessions. The transaction that holds an organization's row decides
 * alone about its roles, owners, seats and invitations (decision 41).
 */
export const actInOrganization = <T>(
  kernel: Kernel,
  caller: Caller,
  { key, to, lock = 'no key update', others = [] }: ActInOrganization,
  work: (kernel: Kernel, membership: Membership, user: User) => Promise<T>,
): Promise<T> =>
  act(kernel, { ...bySession(caller), others }, async (kernel, { user }) => {
    const membership = await expectMembership(kernel, user.id, key, lock)
    if (to !== undefined) expectPermission(kernel, membership, to)
    return work(kernel, membership, user)
  })
