import { deleteAccounts } from '#identity/accounts.ts'
import { emailFrom } from '#identity/emails.ts'
import { actOnTicket, stateAgain } from '#identity/proof.ts'
import { deleteUserSessions } from '#identity/sessions.ts'
import { deleteTickets, issueTicket, type Ticket } from '#identity/tickets.ts'
import { findUser, type User, updateUser } from '#identity/users.ts'
import { isConflict } from '#kernel/db/conflicts.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { sendMail } from '#kernel/mail/mailer.ts'
import { actAsCaller, type Caller, proofOf } from '../access.ts'
import { type Admission, admit, type Visit } from '../admit.ts'
import { fail } from '../errors.ts'
import { isFresh } from '../fresh.ts'
import { mails } from '../mails.ts'
import { authUrl } from '../urls.ts'
import { browserMark, sendVerificationMail } from './verification.ts'

/** What the click on a link comes with. */
export type Click = {
  readonly caller: Caller | undefined
  readonly browser: string | undefined
  readonly visit: Visit
}

const LINKS = ['verify-email', 'confirm-change-email', 'change-email'] as const

const invalidToken = () => fail('INVALID_TOKEN')

/** The user as the link left it, and a session where `auth.email.sign_in_after_verification` asks for one. */
export type Followed = { readonly user: User; readonly admission: Admission | undefined }

/** What a link to /verify-email does, by what its token is for. */
export async function followEmailLink(kernel: Kernel, token: string, click: Click): Promise<Followed> {
  const link = { purposes: LINKS, token }
  const followed = await actOnTicket(kernel, link, invalidToken, async (kernel, user, ticket) => {
    if (ticket.expired) throw fail('TOKEN_EXPIRED')
    const changed = await follow(kernel, user, ticket, click)
    // A link of a stranger's own account, followed from a page, must not sign anyone in to it.
    const mayStart = click.caller === undefined && !click.visit.isCrossSite
    const signsIn = kernel.config.auth.email.sign_in_after_verification && mayStart
    if (!signsIn || ticket.purpose !== 'verify-email') return { user: changed, admission: undefined }
    return { user: changed, admission: await admit(kernel, { userId: user.id }, invalidToken, click.visit) }
  })
  await kernel.coherence.settle()
  return followed
}

function follow(
  kernel: Kernel,
  user: User,
  ticket: Ticket<(typeof LINKS)[number]>,
  click: Click,
): Promise<User> {
  const { purpose, payload, address, sessionId } = ticket
  if (purpose === 'verify-email')
    return proveEmail(kernel, user, click, 'browser' in payload ? payload.browser : undefined)
  if (purpose === 'change-email') return changeNow(kernel, user, address)
  // What this purpose carries.
  return mailNewAddress(kernel, { user, sessionId }, payload as ChangeEmail)
}

/**
 * The first proof of an address: whatever was added before somebody proved it goes, because whoever added it may not
 * own the address. The password stays only if the click shows that it comes from who set it: a session of that user, or
 * the cookie of the browser that signed up.
 */
async function proveEmail(
  kernel: Kernel,
  user: User,
  click: Click,
  browser: string | undefined,
): Promise<User> {
  if (user.emailVerified) return user
  const own = await ownSession(kernel, user, click.caller)
  const isSameBrowser =
    browser !== undefined && click.browser !== undefined && browserMark(click.browser) === browser
  await deleteUserSessions(kernel.db, user.id, own)
  await deleteAccounts(kernel.db, user.id, { keepPassword: own !== undefined || isSameBrowser })
  await deleteTickets(kernel.db, user.id)
  return (await updateUser(kernel.db, user.id, { emailVerified: true }, kernel.now())) ?? user
}

/** The session of the click, when it is this user's and lives. */
async function ownSession(
  kernel: Kernel,
  { id: userId }: User,
  caller: Caller | undefined,
): Promise<string | undefined> {
  if (caller?.user.id !== userId) return undefined
  const lives = await stateAgain(kernel, proofOf(caller))
  return lives && caller.session.id
}

/** The last click of a change: the address is the new one, and proven. Sessions stay; other links are worth nothing. */
async function changeNow(kernel: Kernel, user: User, newEmail: string): Promise<User> {
  await deleteTickets(kernel.db, user.id)
  try {
    return (
      (await updateUser(kernel.db, user.id, { email: newEmail, emailVerified: true }, kernel.now())) ?? user
    )
  } catch (error) {
    // Somebody else has taken it meanwhile.
    throw isConflict(error, 'user_email_key') ? fail('INVALID_TOKEN') : error
  }
}

export type ChangeEmail = { readonly newEmail: string; readonly callbackURL?: string | undefined }

/**
 * Begins a change of address: a link to the new one and a notice to the old; from a session that is not fresh first a
 * link to the old. Nothing tells whether the new address has an account.
 */
export async function changeEmail(kernel: Kernel, caller: Caller, asked: ChangeEmail): Promise<void> {
  const newEmail = emailFrom(asked.newEmail)
  if (newEmail === undefined) throw fail('INVALID_EMAIL')
  if (newEmail === caller.user.email) throw fail('EMAIL_IS_THE_SAME')
  const { session } = caller
  await actAsCaller(kernel, caller, async (kernel, user) => {
    const from = { user, sessionId: session.id }
    if (isFresh(kernel, session)) await mailNewAddress(kernel, from, { ...asked, newEmail })
    else await mailOldAddress(kernel, from, { ...asked, newEmail })
  })
}

/** Whose address changes, and the session that asked: when that ends, so do the links. */
type Asking = { readonly user: User; readonly sessionId: string | null }

async function mailOldAddress(
  kernel: Kernel,
  { user, sessionId }: Asking,
  { newEmail, callbackURL }: ChangeEmail,
): Promise<void> {
  if (!(await kernel.limits.allows('mail_recipient', user.email))) return
  const life = kernel.config.auth.email.verification_expires_in
  const payload = callbackURL === undefined ? { newEmail } : { newEmail, callbackURL }
  const token = await issueTicket(kernel, 'confirm-change-email', {
    userId: user.id,
    sessionId,
    address: user.email,
    life,
    payload,
  })
  await sendMail(
    kernel,
    mails.confirmChangeEmail(user, newEmail, authUrl(kernel, '/verify-email', { token, callbackURL }), life),
  )
}

/** To an address that has an account nothing is mailed; the old one hears of it either way. */
async function mailNewAddress(
  kernel: Kernel,
  { user, sessionId }: Asking,
  { newEmail, callbackURL }: ChangeEmail,
): Promise<User> {
  await sendMail(kernel, mails.emailIsChanging(user, newEmail))
  const isTaken = (await findUser(kernel.db, 'email', newEmail)) !== undefined
  if (isTaken || !(await kernel.limits.allows('mail_recipient', newEmail))) return user
  const life = kernel.config.auth.email.verification_expires_in
  const token = await issueTicket(kernel, 'change-email', {
    userId: user.id,
    sessionId,
    address: newEmail,
    life,
    payload: {},
  })
  const url = authUrl(kernel, '/verify-email', { token, callbackURL })
  await sendMail(kernel, mails.changeEmail(newEmail, url, life))
  return user
}

/** Worked from the queue, so that nobody learns from the time of an answer whether an address has an account. */
export async function mailVerification(
  kernel: Kernel,
  email: string,
  callbackURL: string | undefined,
): Promise<void> {
  const user = await findUser(kernel.db, 'email', email)
  if (user !== undefined && !user.emailVerified) await sendVerificationMail(kernel, user, { callbackURL })
}
