import { emailFrom } from '#identity/emails.ts'
import { tell, tellChange } from '#identity/tell.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { UUID } from '#kernel/random.ts'
import type { Caller } from '../door/access.ts'
import { fail } from '../errors.ts'
import {
  deleteMember,
  findMember,
  hasOtherOwner,
  listMembers,
  type MemberPage,
  type MemberWithUser,
  updateMemberRole,
} from './member-store.ts'
import { actInOrganization, expectKey, expectMembership, type NamedOrganization } from './membership.ts'
import { acceptableRoles, coversRoles, expectMayGive, isOwner, TO } from './roles.ts'
import type { Member } from './store.ts'

/** The caller's place in the active organization. */
export async function getActiveMember(kernel: Kernel, caller: Caller): Promise<MemberWithUser> {
  const { user } = caller
  const { member } = await expectMembership(kernel, user.id, expectKey(caller, {}))
  return { ...member, user }
}

/** The role of the caller, or of another member. For the active organization the session knows the caller's. */
export async function getMemberRole(
  kernel: Kernel,
  caller: Caller,
  { userId = caller.user.id, ...named }: NamedOrganization & { readonly userId?: string | undefined },
): Promise<string> {
  const key = expectKey(caller, named)
  const { organization, member } = await expectMembership(kernel, caller.user.id, key)
  if (userId === caller.user.id) return member.role
  const other = UUID.test(userId) ? await findMember(kernel.db, organization.id, { userId }) : undefined
  if (other === undefined) throw fail('MEMBER_NOT_FOUND')
  return other.role
}

type MemberList = {
  readonly members: MemberWithUser[]
  /** All members of the organization. */
  readonly total: number
  /** The `cursor` of the next page; null on the last one. */
  readonly nextCursor: string | null
}

/** A page of an organization's members. With a cursor, every page takes the same time. */
export async function membersOf(
  kernel: Kernel,
  caller: Caller,
  named: NamedOrganization,
  page: MemberPage,
): Promise<MemberList> {
  const { organization } = await expectMembership(kernel, caller.user.id, expectKey(caller, named))
  const members = await listMembers(kernel.db, organization.id, page)
  const last = members.length < page.limit ? undefined : members.at(-1)
  return { members, total: organization.memberCount, nextCursor: last?.id ?? null }
}

/** Removes a member, named by the id of the member or the email of the user. */
export async function removeMember(
  kernel: Kernel,
  caller: Caller,
  named: NamedOrganization,
  memberIdOrEmail: string,
): Promise<MemberWithUser> {
  const key = expectKey(caller, named)
  const { organization } = await expectMembership(kernel, caller.user.id, key)
  const target = await findMember(kernel.db, organization.id, keyOfMember(memberIdOrEmail))
  const others = target === undefined ? [] : [target.userId]
  const to = TO.REMOVE_MEMBER
  return actInOrganization(kernel, caller, { key, to, others }, async (kernel, membership) => {
    // As of now, with the locks.
    const member = target && (await findMember(kernel.db, organization.id, { id: target.id }))
    if (member === undefined) throw fail('MEMBER_NOT_FOUND')
    if (!coversRoles(kernel, membership.member.role, member.role)) throw fail(to.refusal)
    await removeUnlessLastOwner(kernel, member)
    return member
  })
}

function keyOfMember(named: string): { readonly id: string } | { readonly email: string } {
  if (UUID.test(named)) return { id: named }
  const email = emailFrom(named)
  if (email === undefined) throw fail('MEMBER_NOT_FOUND')
  return { email }
}

/** The caller leaves. */
export async function leaveOrganization(
  kernel: Kernel,
  caller: Caller,
  organizationId: string,
): Promise<Member> {
  const key = { id: organizationId }
  return actInOrganization(kernel, caller, { key }, async (kernel, { member }) => {
    await removeUnlessLastOwner(kernel, member)
    return member
  })
}

/** In a transaction that holds the organization. */
export async function removeUnlessLastOwner(kernel: Kernel, member: Member): Promise<void> {
  if (isOwner(member.role) && !(await hasOtherOwner(kernel.db, member)))
    throw fail('YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER')
  await deleteMember(kernel.db, member.id)
  const { organizationId, userId } = member
  await tell(kernel, 'member.removed', { targetId: userId, organizationId })
}

type NewRole = { readonly memberId: string; readonly role: string | readonly string[] }

/** Gives a member other roles. */
export async function changeMemberRole(
  kernel: Kernel,
  caller: Caller,
  named: NamedOrganization,
  { memberId, role: given }: NewRole,
): Promise<Member> {
  const role = acceptableRoles(kernel, given)
  const key = expectKey(caller, named)
  const to = TO.UPDATE_MEMBER
  return actInOrganization(kernel, caller, { key, to }, async (kernel, { organization, member }, user) => {
    const { id: organizationId } = organization
    const target = UUID.test(memberId)
      ? await findMember(kernel.db, organizationId, { id: memberId })
      : undefined
    if (target === undefined) throw fail('MEMBER_NOT_FOUND')
    const mayChange = [target.role, role].every((other) => coversRoles(kernel, member.role, other))
    if (!mayChange) throw fail(to.refusal)
    expectMayGive(kernel, user, role)
    return giveRole(kernel, target, role)
  })
}

/** In a transaction that holds the organization. One owner stays. */
export async function giveRole(kernel: Kernel, target: Member, role: string): Promise<Member> {
  const { organizationId, userId: targetId } = target
  const losesOwner = isOwner(target.role) && !isOwner(role)
  if (losesOwner && !(await hasOtherOwner(kernel.db, target)))
    throw fail('YOU_CANNOT_LEAVE_THE_ORGANIZATION_WITHOUT_AN_OWNER')
  await updateMemberRole(kernel.db, target.id, role)
  const details = { from: target.role, to: role }
  const changed = role === target.role ? [] : ['role']
  await tellChange(kernel, 'member.role_changed', changed, { targetId, organizationId, details })
  return { ...target, role }
}
