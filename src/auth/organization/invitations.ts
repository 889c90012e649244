import { findUser, hasProvenEmail, isBanned, type User } from '#identity/users.ts'
import type { Action } from '#kernel/audit/actions.ts'
import { recordAct } from '#kernel/audit/record-act.ts'
import { emit, type Kernel } from '#kernel/kernel.ts'
import { sendMail } from '#kernel/mail/mailer.ts'
import { UUID, uuidv7 } from '#kernel/random.ts'
import type { Caller } from '../access.ts'
import { authUrl } from '../auth-url.ts'
import { fail } from '../errors.ts'
import { allowsMail } from '../mail-allowance.ts'
import { MAILS } from '../mails.ts'
import { withQuery } from '../redirect.ts'
import { acceptableEmail } from '../user-fields.ts'
import {
  deleteInvitation,
  endInvitation,
  findInvitation,
  findPending,
  hasInvitations,
  type InvitationView,
  insertInvitation,
  listInvitations,
  listInvitationsTo,
  renewInvitation,
} from './invitation-store.ts'
import { findMember, insertMember } from './member-store.ts'
import {
  actInOrganization,
  actWithUsers,
  expectKey,
  expectMembership,
  expectPermission,
  type NamedOrganization,
} from './membership.ts'
import { mayActivate } from './organization.ts'
import { acceptableRoles, coversRoles, isMemberPermitted } from './roles.ts'
import {
  findMembership,
  type Invitation,
  lockOrganization,
  type Member,
  type Organization,
  updateActiveOrganization,
} from './store.ts'

type Page = { readonly limit: number; readonly offset: number }

const CREATE = { invitation: ['create'] } as const
const MAY_NOT_INVITE = 'YOU_ARE_NOT_ALLOWED_TO_INVITE_USERS_TO_THIS_ORGANIZATION'
const notFound = () => fail('INVITATION_NOT_FOUND')

export type Invite = {
  readonly email: string
  readonly role: string | readonly string[]
  /** Extends a pending invitation of the address, and mails again. */
  readonly resend?: boolean | undefined
}

/** Invites an address, and mails the invitation to it. */
export function inviteMember(
  kernel: Kernel,
  caller: Caller,
  named: NamedOrganization,
  { email: typed, role: given, resend = false }: Invite,
): Promise<Invitation> {
  const email = acceptableEmail(typed)
  const role = acceptableRoles(kernel, given)
  const key = expectKey(caller, named)
  return actInOrganization(kernel, caller, { key }, async (kernel, { organization, member }, inviter) => {
    expectPermission(kernel, { organization, member }, CREATE, MAY_NOT_INVITE)
    if (!coversRoles(kernel, member.role, role))
      throw fail('YOU_ARE_NOT_ALLOWED_TO_INVITE_USER_WITH_THIS_ROLE')
    if ((await findMember(kernel.db, organization.id, { email })) !== undefined)
      throw fail('USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION')
    const pending = await findPending(kernel.db, organization.id, email)
    const isOpen = pending !== undefined && pending.expiresAt > kernel.now()
    if (isOpen && !resend) throw fail('USER_IS_ALREADY_INVITED_TO_THIS_ORGANIZATION')
    if (isOpen && !coversRoles(kernel, member.role, pending.role))
      throw fail('YOU_ARE_NOT_ALLOWED_TO_INVITE_USER_WITH_THIS_ROLE')
    const expiresAt = new Date(kernel.now().getTime() + kernel.config.auth.organization.invitation_expires_in)
    const invitation = isOpen
      ? await renewInvitation(kernel.db, pending.id, { inviterId: inviter.id, role, expiresAt })
      : await addInvitation(kernel, organization, { inviterId: inviter.id, email, role, expiresAt }, pending)
    await recordInvitation(kernel, 'invitation.created', invitation)
    await mailInvitation(kernel, invitation, { organization, inviter })
    return invitation
  })
}

async function addInvitation(
  kernel: Kernel,
  { id: organizationId }: Organization,
  invitation: Pick<Invitation, 'inviterId' | 'email' | 'role' | 'expiresAt'>,
  expired: Invitation | undefined,
): Promise<Invitation> {
  const { db, config, random } = kernel
  const createdAt = kernel.now()
  if (expired !== undefined) await deleteInvitation(db, expired.id)
  if (await hasInvitations(db, organizationId, createdAt, config.auth.organization.max_invitations))
    throw fail('INVITATION_LIMIT_REACHED')
  const id = uuidv7(createdAt, random)
  return insertInvitation(db, { ...invitation, id, organizationId, status: 'pending', createdAt })
}

const recordInvitation = (
  kernel: Kernel,
  action: Extract<Action, `invitation.${string}`>,
  { id, organizationId, role }: Invitation,
): Promise<void> =>
  recordAct(kernel, action, { targetId: organizationId, organizationId, details: { invitation: id, role } })

/** Opening the link changes nothing and needs no secret: only the recipient's session can accept. */
async function mailInvitation(
  kernel: Kernel,
  { id, email, role, expiresAt }: Invitation,
  { organization, inviter }: { readonly organization: Organization; readonly inviter: User },
): Promise<void> {
  if (!(await allowsMail(kernel, email))) return
  const page = kernel.config.auth.email.links.invitation
  const url = page === undefined ? authUrl(kernel, '/confirm/invitation', { id }) : withQuery(page, { id })
  const user = await findUser(kernel.db, 'email', email)
  const recipient = user ?? { name: '', email, emailProvenAt: null }
  const lifetime = expiresAt.getTime() - kernel.now().getTime()
  await sendMail(kernel, MAILS.invitation({ recipient, url, lifetime, organization, inviter, role }))
}

/** A pending invitation, for its recipient and for members who may invite. */
export async function getInvitation(kernel: Kernel, { user }: Caller, id: string): Promise<InvitationView> {
  const invitation = await findOpen(kernel, id)
  if (invitation.email === user.email) {
    if (!hasProvenEmail(user)) throw fail('EMAIL_VERIFICATION_REQUIRED_FOR_INVITATION')
    return invitation
  }
  const membership = await findMembership(kernel.db, user.id, { id: invitation.organizationId })
  if (membership === undefined || !isMemberPermitted(kernel, membership.member.role, CREATE)) throw notFound()
  return invitation
}

async function findOpen(kernel: Kernel, id: string): Promise<InvitationView> {
  const invitation = UUID.test(id) ? await findInvitation(kernel.db, id, kernel.now()) : undefined
  if (invitation === undefined) throw notFound()
  return invitation
}

/** Invitations of an organization in any state. */
export async function invitationsOf(
  kernel: Kernel,
  caller: Caller,
  named: NamedOrganization,
  page: Page,
): Promise<Invitation[]> {
  const membership = await expectMembership(kernel, caller.user.id, expectKey(caller, named))
  expectPermission(kernel, membership, CREATE, MAY_NOT_INVITE)
  return listInvitations(kernel.db, membership.organization.id, page)
}

/** Pending invitations to the caller's address, which has to be proven. */
export async function invitationsTo(kernel: Kernel, { user }: Caller, page: Page): Promise<InvitationView[]> {
  if (!hasProvenEmail(user)) throw fail('EMAIL_VERIFICATION_REQUIRED_FOR_INVITATION')
  return listInvitationsTo(kernel.db, user.email, kernel.now(), page)
}

/** Cancels a pending invitation. */
export async function cancelInvitation(kernel: Kernel, caller: Caller, id: string): Promise<Invitation> {
  const { organizationId } = await findOpen(kernel, id)
  const key = { id: organizationId }
  if ((await findMembership(kernel.db, caller.user.id, key)) === undefined) throw notFound()
  return actInOrganization(kernel, caller, { key }, async (kernel, membership) => {
    const refusal = 'YOU_ARE_NOT_ALLOWED_TO_CANCEL_THIS_INVITATION'
    expectPermission(kernel, membership, { invitation: ['cancel'] }, refusal)
    const canceled = await endInvitation(kernel.db, { id }, 'canceled', kernel.now())
    if (canceled === undefined) throw notFound()
    if (!coversRoles(kernel, membership.member.role, canceled.role)) throw fail(refusal)
    await recordInvitation(kernel, 'invitation.canceled', canceled)
    return canceled
  })
}

type Accepted = { readonly invitation: Invitation; readonly member: Member }

/**
 * Makes the recipient a member. The inviter may have lost the role since, or the organization its last seat, so both are decided here,
 * with the organization's row locked.
 */
export async function acceptInvitation(kernel: Kernel, caller: Caller, id: string): Promise<Accepted> {
  const { organizationId, email } = await findOpen(kernel, id)
  const accepted = await actAsRecipient(kernel, caller, email, async (kernel, user) => {
    const organization = await lockOrganization(kernel.db, organizationId)
    const invitation = await endInvitation(kernel.db, { id, email: user.email }, 'accepted', kernel.now())
    if (organization === undefined || invitation === undefined) throw notFound()
    await expectInviter(kernel, invitation)
    const member = await addMember(kernel, organization, user.id, invitation)
    if (await mayActivate(kernel, organization, caller))
      await updateActiveOrganization(kernel.db, caller.session.id, organizationId)
    return { invitation, member }
  })
  await kernel.coherence.settle()
  return accepted
}

/** Refuses when the inviter may not invite with these roles any more. */
async function expectInviter(kernel: Kernel, { organizationId, inviterId, role }: Invitation): Promise<void> {
  const [inviter, user] = [
    await findMember(kernel.db, organizationId, { userId: inviterId }),
    await findUser(kernel.db, 'id', inviterId),
  ]
  const mayInvite =
    inviter !== undefined &&
    user !== undefined &&
    !isBanned(user, kernel.now()) &&
    isMemberPermitted(kernel, inviter.role, CREATE) &&
    coversRoles(kernel, inviter.role, role)
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
  await recordAct(kernel, 'member.added', { targetId: userId, organizationId, details })
  await emit(kernel, 'auth_member_added', { organization_id: organizationId, user_id: userId })
  return insertMember(kernel.db, {
    id: uuidv7(createdAt, kernel.random),
    organizationId,
    userId,
    role,
    createdAt,
  })
}

/** Rejects the invitation; there is no member. */
export async function rejectInvitation(kernel: Kernel, caller: Caller, id: string): Promise<Invitation> {
  const { email } = await findOpen(kernel, id)
  return actAsRecipient(kernel, caller, email, async (kernel, user) => {
    const rejected = await endInvitation(kernel.db, { id, email: user.email }, 'rejected', kernel.now())
    if (rejected === undefined) throw notFound()
    await recordInvitation(kernel, 'invitation.rejected', rejected)
    return rejected
  })
}

/** An address that is not proven may be another person's, and so may the invitation. */
const actAsRecipient = <T>(
  kernel: Kernel,
  caller: Caller,
  email: string,
  work: (kernel: Kernel, user: User) => Promise<T>,
): Promise<T> =>
  actWithUsers(kernel, caller, [], (kernel, user) => {
    if (user.email !== email) throw notFound()
    if (!hasProvenEmail(user))
      throw fail('EMAIL_VERIFICATION_REQUIRED_BEFORE_ACCEPTING_OR_REJECTING_INVITATION')
    return work(kernel, user)
  })
