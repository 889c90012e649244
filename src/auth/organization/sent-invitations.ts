import { tell } from '#identity/tell.ts'
import { tokenHash } from '#identity/tokens.ts'
import { findUser, type User } from '#identity/users.ts'
import type { Action } from '#kernel/audit/actions.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { sendMail } from '#kernel/mail/mailer.ts'
import { randomToken, uuidv7 } from '#kernel/random.ts'
import { authUrl } from '../auth-url.ts'
import type { Caller } from '../door/access.ts'
import { fail } from '../errors.ts'
import { allowsMail } from '../mailing/allowance.ts'
import { MAILS } from '../mailing/texts.ts'
import { withQuery } from '../redirect.ts'
import { acceptableEmail } from '../user-fields.ts'
import {
  cancelInvitationsFrom,
  deleteInvitation,
  findPending,
  hasInvitations,
  insertInvitation,
  renewInvitation,
  updateInvitationSecret,
} from './invitation-store.ts'
import { findMember } from './member-store.ts'
import { actInOrganization, expectKey, type NamedOrganization } from './membership.ts'
import { acceptableRoles, coversRoles, expectMayGive, TO } from './roles.ts'
import { type Invitation, lockOrganizationsOf, type Organization } from './store.ts'

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
  asked: Invite,
): Promise<Invitation> {
  const invite = acceptableInvite(kernel, asked)
  const key = expectKey(caller, named)
  const to = TO.INVITE
  return actInOrganization(kernel, caller, { key, to }, (kernel, { organization, member }, inviter) =>
    sendInvitation(kernel, invite, {
      ...{ organization, inviter, sessionId: caller.session.id },
      covers: (role) => coversRoles(kernel, member.role, role),
    }),
  )
}

type AcceptableInvite = { readonly email: string; readonly role: string; readonly resend: boolean }

export const acceptableInvite = (
  kernel: Kernel,
  { email, role, resend = false }: Invite,
): AcceptableInvite => ({
  email: acceptableEmail(email),
  role: acceptableRoles(kernel, role),
  resend,
})

type Inviting = {
  readonly organization: Organization
  readonly inviter: User
  readonly sessionId: string
  /** Whether the inviter may give these roles. */
  readonly covers: (role: string) => boolean
}

/** In a transaction that holds the organization. */
export async function sendInvitation(
  kernel: Kernel,
  { email, role, resend }: AcceptableInvite,
  { organization, inviter, sessionId, covers }: Inviting,
): Promise<Invitation> {
  if (!covers(role)) throw fail('YOU_ARE_NOT_ALLOWED_TO_INVITE_USER_WITH_THIS_ROLE')
  expectMayGive(kernel, inviter, role)
  if ((await findMember(kernel.db, organization.id, { email })) !== undefined)
    throw fail('USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION')
  const pending = await findPending(kernel.db, organization.id, email)
  const isOpen = pending !== undefined && pending.expiresAt > kernel.now()
  if (isOpen && !resend) throw fail('USER_IS_ALREADY_INVITED_TO_THIS_ORGANIZATION')
  if (isOpen && !covers(pending.role)) throw fail('YOU_ARE_NOT_ALLOWED_TO_INVITE_USER_WITH_THIS_ROLE')
  const expiresAt = new Date(kernel.now().getTime() + kernel.config.auth.organization.invitation_expires_in)
  const sent = { inviterId: inviter.id, addedBy: sessionId, role, expiresAt }
  const invitation = isOpen
    ? await renewInvitation(kernel.db, pending.id, sent)
    : await addInvitation(kernel, organization, { ...sent, email }, pending)
  await recordInvitation(kernel, 'invitation.created', invitation)
  await mailInvitation(kernel, invitation, { organization, inviter })
  return invitation
}

async function addInvitation(
  kernel: Kernel,
  { id: organizationId }: Organization,
  invitation: Pick<Invitation, 'inviterId' | 'addedBy' | 'email' | 'role' | 'expiresAt'>,
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

export const recordInvitation = (
  kernel: Kernel,
  action: Extract<Action, `invitation.${string}`>,
  { id, organizationId, role }: Invitation,
): Promise<void> =>
  tell(kernel, action, { targetId: organizationId, organizationId, details: { invitation: id, role } })

/**
 * Opening the link changes nothing: only a session of the recipient can accept. The secret shows that the mail has arrived, which proves
 * the address of that session. It is stored as a hash, and no answer shows it.
 */
async function mailInvitation(
  kernel: Kernel,
  { id, email, role, expiresAt }: Invitation,
  { organization, inviter }: { readonly organization: Organization; readonly inviter: User },
): Promise<void> {
  if (!(await allowsMail(kernel, email))) return
  const secret = randomToken(kernel.random)
  await updateInvitationSecret(kernel.db, id, tokenHash(secret))
  const page = kernel.config.auth.email.links.invitation
  const query = { id: `${id}.${secret}` }
  const url = page === undefined ? authUrl(kernel, '/confirm/invitation', query) : withQuery(page, query)
  const user = await findUser(kernel.db, 'email', email)
  const recipient = user ?? { name: '', email, emailProvenAt: null }
  const lifetime = expiresAt.getTime() - kernel.now().getTime()
  await sendMail(kernel, MAILS.invitation({ recipient, url, lifetime, organization, inviter, role }))
}

/**
 * Ends the pending invitations that a user has sent, but for those of one session. For the first proof of the address: until then they
 * may be those of a stranger. The user's row is locked, and the organizations are locked first (membership.ts).
 */
export async function withdrawInvitations(kernel: Kernel, user: User, exceptOf?: string): Promise<void> {
  await lockOrganizationsOf(kernel, user)
  const canceled = await cancelInvitationsFrom(kernel.db, user.id, exceptOf)
  for (const invitation of canceled) await recordInvitation(kernel, 'invitation.canceled', invitation)
}
