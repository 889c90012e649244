import { deleteAccounts, requirePasswordChange, upsertPassword } from '#identity/accounts.ts'
import { deleteKnownDevices } from '#identity/known-devices.ts'
import { deletePasskeys } from '#identity/passkeys.ts'
import { hashPassword } from '#identity/passwords.ts'
import { lockProvenUser, type Proof } from '#identity/proof.ts'
import { deleteUserSessions } from '#identity/sessions.ts'
import { tell } from '#identity/tell.ts'
import type { SignUpMark, UserPurpose } from '#identity/ticket-purposes.ts'
import { deleteTickets, type Ticket } from '#identity/tickets.ts'
import { hasProvenEmail, type User, updateUser } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { proofOf } from '../door/access.ts'
import { browserMark } from '../door/cookies.ts'
import { fail } from '../errors.ts'
import { noticeTo } from '../mailing/allowance.ts'
import type { FormValues, OpenLink } from '../mailing/flow.ts'
import { type LinkClick, sourceOf } from '../mailing/link-click.ts'
import { MAILS } from '../mailing/texts.ts'
import { forgetLastOrganization } from '../organization/initial.ts'
import { withdrawInvitations } from '../organization/sent-invitations.ts'
import { checkPasswordOf } from '../password/password.ts'
import { acceptablePassword } from '../password/password-policy.ts'
import { removeSecondFactor } from '../two-factor/enrolment.ts'

/**
 * Evidence, besides the click, that the owner of the account has clicked. `link`: no page was shown, so nothing was asked for.
 * `page`: the page was shown and nothing was entered. `password`: it was right; `stored` is the hash. `new password`: its hash.
 */
type Evidence =
  | { readonly by: 'link' }
  | { readonly by: 'page' }
  | { readonly by: 'password'; readonly stored: string }
  | { readonly by: 'new password'; readonly hash: string }

/** Checks what was entered before any row is locked, since hashing takes long. */
export async function readEvidence(
  kernel: Kernel,
  { user, ticket }: OpenLink<UserPurpose>,
  click: LinkClick,
  values: FormValues,
): Promise<Evidence> {
  const { password = '', newPassword = '' } = values
  if (newPassword !== '') {
    return {
      by: 'new password',
      hash: await hashPassword(kernel, await acceptablePassword(kernel, newPassword)),
    }
  }
  if (password === '') return { by: 'page' }
  const waiting = waitingPassword(ticket)
  const stored = await checkPasswordOf(kernel, user, password, sourceOf(user, click), waiting)
  return { by: 'password', stored }
}

/** The hash of a password that the account gets when the link is followed (auth/anonymous/). */
export const waitingPassword = ({ payload }: Ticket<UserPurpose>): string | undefined =>
  'password' in payload ? payload.password : undefined

export type ProvingClick = LinkClick & { readonly evidence: Evidence }

/**
 * First proof of the address that the account was opened with (decision 15). Before it, another person may have opened the account with
 * this address. `signUp`: where that was, as the link tells.
 */
export async function proveEmail(
  kernel: Kernel,
  user: User,
  click: ProvingClick,
  signUp: SignUpMark,
): Promise<User> {
  if (hasProvenEmail(user)) {
    // The link is not a second way to reset a password.
    if (click.evidence.by === 'new password') throw fail('INVALID_TOKEN')
    return user.emailVerified ? user : verifyAgain(kernel, user)
  }
  const owner = await expectOwner(kernel, user, click, signUp)
  await removeWhatOthersAdded(kernel, user, owner)
  return storeProof(kernel, user, { isOwner: owner !== undefined, evidence: click.evidence })
}

/** The address that is to become the user's, and the password that waits for it. */
export type EmailChange = Pick<Ticket<'change-email'>, 'address' | 'payload'>

/**
 * First proof of an address that replaces another. A stranger may have named it for an account of their own. What the owner of the account
 * has added stays, sessions too. Whether a waiting password stays is not told by the session: that of an anonymous user may be another
 * person's too, who has chosen the password.
 */
export async function proveNewEmail(
  kernel: Kernel,
  user: User,
  click: ProvingClick,
  { address: email, payload }: EmailChange,
): Promise<User> {
  const judged = payload.password === undefined ? click : { ...click, caller: undefined }
  const owner = await expectOwner(kernel, user, judged, payload)
  // Before the address is the user's: the redemption of one of its tickets may be about to add an account (proof.ts), and would wait
  // for this transaction while this one waits for the ticket.
  if (owner === undefined) await removeWhatOthersAdded(kernel, { ...user, email, keepsFactor: false })
  return storeProof(kernel, user, { email, isOwner: owner !== undefined, evidence: click.evidence })
}

/** First proof by what was mailed to the address, in a session of the user: it keeps the password, that session and what it has added. */
export async function proveInSession(kernel: Kernel, user: User, sessionId: string): Promise<void> {
  if (hasProvenEmail(user)) return
  await removeWhatOthersAdded(kernel, user, { sessionId })
  await storeProof(kernel, user, { isOwner: true })
}

/** First proof by a mailed link or code that signs in: nothing shows whether it is the owner of what was added before, so that all of it goes. */
export async function proveAtSignIn(kernel: Kernel, user: User): Promise<User> {
  if (hasProvenEmail(user)) return user.emailVerified ? user : verifyAgain(kernel, user)
  await removeWhatOthersAdded(kernel, user)
  return storeProof(kernel, user, { isOwner: false })
}

/** An admin has taken the verification back since the address was proven. */
const verifyAgain = async (kernel: Kernel, user: User): Promise<User> => {
  await tell(kernel, 'email.verified', { targetId: user.id, details: { removedWhatOthersAdded: false } })
  return (await updateUser(kernel.db, user.id, { emailVerified: true }, kernel.now())) ?? user
}

/** The person who has set the password. What others have added goes at the first proof. */
type Owner = {
  /** The session that is theirs for certain; it may be over. What was added in it is theirs too. */
  readonly sessionId: string
  /** The cookie of the browser that is theirs for certain. */
  readonly knownDevice?: string | undefined
}

/** In place of the session of an owner of whom none is known. Nothing was added in it. */
const NO_SESSION = '00000000-0000-0000-0000-000000000000'

/** The owner, or undefined for another person, of whom the page demands a new password. */
async function expectOwner(
  kernel: Kernel,
  user: User,
  click: ProvingClick,
  signUp: SignUpMark,
): Promise<Owner | undefined> {
  const owner = await ownerOf(kernel, user, click, signUp)
  if (owner === undefined && click.evidence.by === 'page') throw fail('PASSWORD_REQUIRED')
  if (owner === undefined && click.evidence.by === 'password') throw fail('INVALID_PASSWORD')
  return owner
}

/**
 * The owner of the account, if the click is theirs: it comes with a session of the user, from the browser that signed up, or with the
 * password. Session and password are checked again under the lock of the user's row.
 */
async function ownerOf(
  kernel: Kernel,
  { id: userId }: User,
  { caller, browser, evidence, context: { knownDevice } }: ProvingClick,
  signUp: SignUpMark,
): Promise<Owner | undefined> {
  if (evidence.by === 'new password') return undefined
  const holds = async (proof: Proof) => (await lockProvenUser(kernel, proof)) !== undefined
  const isRight = evidence.by === 'password' && (await holds({ userId, password: evidence.stored }))
  if (evidence.by === 'password' && !isRight) return undefined
  if (caller?.user.id === userId && (await holds(proofOf(caller))))
    return { sessionId: caller.session.id, knownDevice }
  const isMarked = browser !== undefined && browserMark(browser) === signUp.browser
  return isMarked || isRight ? { sessionId: signUp.session ?? NO_SESSION, knownDevice } : undefined
}

/**
 * The click comes from a session of this user or from the browser that signed up, as far as can be seen without a lock. About a waiting
 * password the session says nothing (`proveNewEmail`).
 */
export function isOwnClick(user: User, ticket: Ticket<UserPurpose>, { caller, browser }: LinkClick): boolean {
  if (caller?.user.id === user.id && waitingPassword(ticket) === undefined) return true
  const { payload } = ticket
  return 'browser' in payload && browser !== undefined && browserMark(browser) === payload.browser
}

/**
 * Removes pending invitations from the user, sessions, linked accounts, passkeys, the second factor, known devices and tickets; returns
 * the number of sessions. Of an owner stay the session that is theirs, what was added in it, and the account that the user was added with.
 */
export async function removeWhatOthersAdded(kernel: Kernel, user: User, owner?: Owner): Promise<number> {
  const { db } = kernel
  const exceptOf = owner?.sessionId
  // First, since organizations are locked before sessions (membership.ts).
  await withdrawInvitations(kernel, user, exceptOf)
  const ended = await deleteUserSessions(db, user.id, exceptOf)
  await deleteAccounts(db, user.id, { keepPassword: true, exceptOf })
  await deletePasskeys(db, user.id, exceptOf)
  await removeSecondFactor(kernel, user, exceptOf)
  await deleteKnownDevices(kernel, user.id, owner?.knownDevice)
  await deleteTickets(db, user)
  if (owner === undefined) await distrustPassword(kernel, user)
  return ended
}

/**
 * Nobody knows who has set the password: it signs no one in until it is changed, and no organization is active in a new session, since a
 * stranger may share the last one. It is never deleted.
 */
async function distrustPassword({ db, now }: Kernel, { id }: User): Promise<void> {
  await requirePasswordChange(db, id, now())
  await forgetLastOrganization(db, id)
}

type NewProof = {
  /** The address, if it is another one. */
  readonly email?: string
  readonly isOwner: boolean
  readonly evidence?: Evidence
}

/** The address is proven. In place of an owner, who has a password, a new one may have been chosen. */
async function storeProof(
  kernel: Kernel,
  user: User,
  { email = user.email, isOwner, evidence }: NewProof,
): Promise<User> {
  const now = kernel.now()
  const proof = { email, emailVerified: true, emailProvenAt: now, isAnonymous: false }
  const proven = (await updateUser(kernel.db, user.id, proof, now)) ?? user
  if (!isOwner && evidence?.by === 'new password') await choosePassword(kernel, proven, evidence.hash)
  const isChange = email !== user.email
  const action = isChange ? 'email.changed' : 'email.verified'
  const details = { removedWhatOthersAdded: !isChange || !isOwner }
  await tell(kernel, action, { targetId: user.id, details })
  return proven
}

async function choosePassword(kernel: Kernel, user: User, password: string): Promise<void> {
  const now = kernel.now()
  const id = uuidv7(now, kernel.random)
  await upsertPassword(kernel.db, { id, userId: user.id, password, now, origin: 'mail' })
  await tell(kernel, 'password.set', { targetId: user.id })
  await noticeTo(kernel, user, MAILS.passwordChanged(user))
}
