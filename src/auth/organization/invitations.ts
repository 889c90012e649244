import { act } from '#identity/act.ts'
import { isPermitted } from '#identity/permissions.ts'
import { tell } from '#identity/tell.ts'
import { tokenHash } from '#identity/tokens.ts'
import { findUser, hasProvenEmail, isBanned, type User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { UUID, uuidv7 } from '#kernel/random.ts'
import { TO as ADMIN_TO } from '../admin/permissions.ts'
import { bySession, type Caller } from '../door/access.ts'
import { proveInSession } from '../email/first-proof.ts'
import { fail } from '../errors.ts'
import {
  endInvitation,
  findInvitation,
  type InvitationView,
  listInvitations,
  listInvitationsTo,
} from './invitation-store.ts'
import { findMember, insertMember } from './member-store.ts'
import {
  actInOrganization,
  expectKey,
  expectMembership,
  expectPermission,
  type NamedOrganization,
} from './membership.ts'
import { mayActivate } from './organization.ts'
import { coversRoles, isMemberPermitted, mayGive, TO } from './roles.ts'
import { recordInvitation } from './sent-invitations.ts'
import {
  findMembership,
  type Invitation,
  lockOrganization,
  type Member,
  type Organization,
  updateActiveOrganization,
} from './store.ts'

type Page = { readonly limit: number; readonly offset: number }

const notFound = () => fail('INVITATION_NOT_FOUND')

/** A pending invitation, for its recipient and for members who may invite. */
export async function getInvitation(kernel: Kernel, { user }: Caller, id: string): Promise<InvitationView> {
  const { isFromMail, ...invitation } = await findOpen(kernel, id)
  if (invitation.email === user.email) {
    if (!isFromMail && !hasProvenEmail(user)) throw fail('EMAIL_VERIFICATION_REQUIRED_FOR_INVITATION')
    return invitation
  }
  const membership = await findMembership(kernel, user.id, { id: invitation.organizationId })
  if (membership === undefined || !isMemberPermitted(kernel, membership.member.role, TO.INVITE.permissions))
    throw notFound()
  return invitation
}

/** `isFromMail`: it was named with the secret of its mail. */
type NamedInvitation = InvitationView & { readonly isFromMail: boolean }

/** By the id, or by the id and the secret as they were mailed. The id alone opens as much to a recipient with a proven address. */
async function findOpen(kernel: Kernel, named: string): Promise<NamedInvitation> {
  const [id = '', secret, ...rest] = named.split('.')
  const isId = UUID.test(id) && rest.length === 0
  const invitation = isId ? await findInvitation(kernel.db, id, kernel.now()) : undefined
  if (invitation === undefined) throw notFound()
  const isFromMail = secret !== undefined && invitation.secretHash?.equals(tokenHash(secret)) === true
  return { ...invitation, isFromMail }
}

/** Invitations of an organization in any state. */
export async function invitationsOf(
  kernel: Kernel,
  caller: Caller,
  named: NamedOrganization,
  page: Page,
): Promise<Invitation[]> {
  const membership = await expectMembership(kernel, caller.user.id, expectKey(caller, named))
  expectPermission(kernel, membership, TO.INVITE)
  return listInvitations(kernel.db, membership.organization.id, page)
}

/** Pending invitations to the caller's address, which has to be proven. */
export async function invitationsTo(kernel: Kernel, { user }: Caller, page: Page): Promise<InvitationView[]> {
  if (!hasProvenEmail(user)) throw fail('EMAIL_VERIFICATION_REQUIRED_FOR_INVITATION')
  return listInvitationsTo(kernel.db, user.email, kernel.now(), page)
}

/** Cancels a pending invitation. */
export async function cancelInvitation(kernel: Kernel, caller: Caller, named: string): Promise<Invitation> {
  const { id, organizationId } = await findOpen(kernel, named)
  const key = { id: organizationId }
  if ((await findMembership(kernel, caller.user.id, key)) === undefined) throw notFound()
  const to = TO.CANCEL_INVITATION
  return actInOrganization(kernel, caller, { key, to }, async (kernel, membership) => {
    const canceled = await endInvitation(kernel.db, { id }, 'canceled', kernel.now())
    if (canceled === undefined) throw notFound()
    if (!coversRoles(kernel, membership.member.role, canceled.role)) throw fail(to.refusal)
    await recordInvitation(kernel, 'invitation.canceled', canceled)
    return canceled
  })
}

type Accepted = { readonly invitation: Invitation; readonly member: Member }

/**
 * Makes the recipient a member. The inviter may have lost the role since, or the organization its last seat, so both are decided here,
 * with the organization's row locked.
 */
export async function acceptInvitation(kernel: Kernel, caller: Caller, named: string): Promise<Accepted> {
  const found = await findOpen(kernel, named)
  const { id, organizationId } = found
  return actAsRecipient(kernel, caller, found, async (kernel, user) => {
    // Before the organization is locked, since it locks those of the user's own invitations too.
    await proveInSession(kernel, user, caller.session.id)
    const organization = await lockOrganization(kernel, organizationId)
    const invitation = await endInvitation(kernel.db, { id, email: user.email }, 'accepted', kernel.now())
    if (organization === undefined || invitation === undefined) throw notFound()
    await expectInviter(kernel, invitation)
    const member = await addMember(kernel, organization, user.id, invitation)
    if (await mayActivate(kernel, organization, caller))
      await updateActiveOrganization(kernel, caller.session.id, organizationId)
    return { invitation, member }
  })
}

/** Refuses when the inviter may not invite with these roles any more: as a member, or as an administrator of the service. */
async function expectInviter(kernel: Kernel, { organizationId, inviterId, role }: Invitation): Promise<void> {
  const [inviter, user] = [
    await findMember(kernel.db, organizationId, { userId: inviterId }),
    await findUser(kernel.db, 'id', inviterId),
  ]
  const isOpen = user !== undefined && !isBanned(user, kernel.now()) && mayGive(kernel, user, role)
  const mayInvite =
    isOpen &&
    (isPermitted(kernel, user, ADMIN_TO.MANAGE_MEMBERS.permissions) ||
      (inviter !== undefined &&
        isMemberPermitted(kernel, inviter.role, TO.INVITE.permissions) &&
        coversRoles(kernel, inviter.role, role)))
  if (!mayInvite) throw notFound()
}

async function addMember(
  kernel: Kernel,
  { id: organizationId, memberCount }: Organization,
  userId: string,
  { id: invitation, inviterId: inviter, role }: Invitation,
): Promise<Member> {
  if ((await findMember(kernel.db, organizationId, { userId })) !== undefined)
    throw fail('USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION')
  if (memberCount >= kernel.config.auth.organization.max_members)
    throw fail('ORGANIZATION_MEMBERSHIP_LIMIT_REACHED')
  const createdAt = kernel.now()
  const details = { role, invitation, inviter }
  await tell(kernel, 'member.added', { targetId: userId, organizationId, details })
  return insertMember(kernel.db, {
    id: uuidv7(createdAt, kernel.random),
    organizationId,
    userId,
    role,
    createdAt,
  })
}

/** Rejects the invitation; there is no member. */
export async function rejectInvitation(kernel: Kernel, caller: Caller, named: string): Promise<Invitation> {
  const found = await findOpen(kernel, named)
  return actAsRecipient(kernel, caller, found, async (kernel, user) => {
    const rejected = await endInvitation(
      kernel.db,
      { id: found.id, email: user.email },
      'rejected',
      kernel.now(),
    )
    if (rejected === undefined) throw notFound()
    await recordInvitation(kernel, 'invitation.rejected', rejected)
    return rejected
  })
}

/** An address that is not proven may be another person's, and so may the invitation. The secret of its mail shows that it is not. */
const actAsRecipient = <T>(
  kernel: Kernel,
  caller: Caller,
  { email, isFromMail }: NamedInvitation,
  work: (kernel: Kernel, user: User) => Promise<T>,
): Promise<T> =>
  act(kernel, bySession(caller), (kernel, { user }) => {
    if (user.email !== email) throw notFound()
    if (!isFromMail && !hasProvenEmail(user))
      throw fail('EMAIL_VERIFICATION_REQUIRED_BEFORE_ACCEPTING_OR_REJECTING_INVITATION')
    return work(kernel, user)
  })
