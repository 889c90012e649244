import { actOnTicket, stateAgain } from '#identity/proof.ts'
import { deleteTickets, deleteTicketsFor, type Ticket } from '#identity/tickets.ts'
import { findUser, type User } from '#identity/users.ts'
import { isConflict } from '#kernel/db/conflicts.ts'
import { atomically, type Kernel } from '#kernel/kernel.ts'
import { type Mail, sendMail } from '#kernel/mail/mailer.ts'
import { actAsCaller, type Caller } from '../access.ts'
import { type Admission, admit } from '../admit.ts'
import { fail } from '../errors.ts'
import { mailLink } from '../mail-links.ts'
import { type FirstLink, requestMail } from '../mail-requests.ts'
import { openLink } from '../mail-tickets.ts'
import { mails } from '../mails.ts'
import { checkPassword } from '../password/password.ts'
import { acceptableEmail } from '../user-fields.ts'
import { type Click, type Filled, proveEmail, proveNewEmail, type Shown, shownBy } from './first-proof.ts'
import { sendVerificationMail } from './verification.ts'

export const EMAIL_LINKS = ['verify-email', 'confirm-change-email', 'change-email'] as const
type EmailTicket = Ticket<(typeof EMAIL_LINKS)[number]>

const invalidToken = () => fail('INVALID_TOKEN')

/** The user as the link left it, and a session where `auth.email.sign_in_after_verification` asks for one. */
export type Followed = { readonly user: User; readonly admission: Admission | undefined }

/** What a link does by itself, as an application calls it. */
export const followEmailLink = (kernel: Kernel, token: string, click: Click): Promise<Followed> =>
  redeem(kernel, token, { ...click, shown: { by: 'link' } })

/** What the button of the page does: where the click alone does not show whose account it is, the password does. */
export async function confirmEmailLink(
  kernel: Kernel,
  token: string,
  click: Click,
  filled: Filled,
): Promise<Followed> {
  // A guess is refused before it costs a hash.
  const { user } = await openLink(kernel, EMAIL_LINKS, token)
  return redeem(kernel, token, { ...click, shown: await shownBy(kernel, user, filled) })
}

async function redeem(
  kernel: Kernel,
  token: string,
  click: Click & { readonly shown: Shown },
): Promise<Followed> {
  const link = { purposes: EMAIL_LINKS, token }
  const followed = await actOnTicket(kernel, link, invalidToken, async (kernel, user, ticket) => {
    if (ticket.expired) throw fail('TOKEN_EXPIRED')
    const changed = await follow(kernel, user, ticket, click)
    // A link of a stranger's own account must not sign anyone in to it: neither from a page of theirs, nor by the button
    // of ours, which asks nothing once the address is proven.
    const mayStart = click.caller === undefined && !click.context.isCrossSite && !user.emailVerified
    const signsIn = kernel.config.auth.email.sign_in_after_verification && mayStart
    if (!signsIn || ticket.purpose !== 'verify-email') return { user: changed, admission: undefined }
    return { user: changed, admission: await admit(kernel, { userId: user.id }, invalidToken, click.context) }
  })
  await kernel.coherence.settle()
  return followed
}

function follow(
  kernel: Kernel,
  user: User,
  { purpose, payload, address, sessionId }: EmailTicket,
  click: Click & { readonly shown: Shown },
): Promise<User> {
  if (purpose === 'verify-email')
    return proveEmail(kernel, user, click, 'browser' in payload ? payload.browser : undefined)
  if (purpose === 'change-email') return changeNow(kernel, user, click, address)
  // What this purpose carries.
  return mailNewAddress(kernel, { user, sessionId }, payload as NewAddress)
}

/** The last click of a change: the address is the new one, and proven for the first time. Other links are worth nothing. */
async function changeNow(
  kernel: Kernel,
  user: User,
  click: Click & { readonly shown: Shown },
  newEmail: string,
): Promise<User> {
  try {
    const changed = await proveNewEmail(kernel, user, click, newEmail)
    await deleteTickets(kernel.db, user)
    return changed
  } catch (error) {
    // Another account has taken it meanwhile.
    throw isConflict(error, 'user_email_key') ? fail('INVALID_TOKEN') : error
  }
}

type NewAddress = { readonly newEmail: string; readonly callbackURL?: string | undefined }
export type ChangeEmail = NewAddress & { readonly password?: string | undefined }

/**
 * Begins a change of address, in place of one that was begun before. A proven address has to allow it first, by a link,
 * because a session alone could be stolen; the password stands for that. Nothing tells whether the new address has an
 * account.
 */
export async function changeEmail(kernel: Kernel, caller: Caller, asked: ChangeEmail): Promise<void> {
  const newEmail = acceptableEmail(asked.newEmail)
  if (newEmail === caller.user.email) throw fail('EMAIL_IS_THE_SAME')
  const { password } = asked
  const proven = password === undefined ? caller : await checkPassword(kernel, caller, password)
  await actAsCaller(kernel, proven, async (kernel, user) => {
    const from = { user, sessionId: caller.session.id }
    const to = { newEmail, callbackURL: asked.callbackURL }
    await deleteTicketsFor(kernel.db, user.id, CHANGE)
    if (user.emailVerified && password === undefined) await mailOldAddress(kernel, from, to)
    else await mailNewAddress(kernel, from, to)
  })
}

const CHANGE = ['confirm-change-email', 'change-email'] as const

/** Whose address changes, and the session that asked: when that ends, so do the links. */
type Asking = { readonly user: User; readonly sessionId: string | null }

const mailOldAddress = (
  kernel: Kernel,
  { user, sessionId }: Asking,
  { newEmail, callbackURL }: NewAddress,
): Promise<void> =>
  mailLink(kernel, 'confirm-change-email', user, {
    sessionId,
    address: user.email,
    payload: callbackURL === undefined ? { newEmail } : { newEmail, callbackURL },
    callbackURL,
  })

/**
 * To an address that has an account nothing is mailed; the old one hears of it either way. That is left to the queue, so
 * that the time of the answer does not tell it.
 */
async function mailNewAddress(
  kernel: Kernel,
  { user, sessionId }: Asking,
  { newEmail, callbackURL }: NewAddress,
): Promise<User> {
  await sendMail(kernel, mails.emailIsChanging(user, newEmail))
  await mailLink(kernel, 'change-email', user, {
    sessionId,
    address: newEmail,
    payload: {},
    callbackURL,
    deliver: (kernel, mail) => requestMail(kernel, { flow: 'new-address', email: newEmail, mail }),
  })
  return user
}

/** The queue's side of it. The link that is not sent opens nothing: no one knows its token. */
export async function mailUnlessTaken(kernel: Kernel, email: string, mail: Mail): Promise<void> {
  if ((await findUser(kernel.db, 'email', email)) === undefined) await sendMail(kernel, mail)
}

/** Worked from the queue, so that nobody learns from the time of an answer whether an address has an account. */
export async function mailVerification(
  kernel: Kernel,
  email: string,
  callbackURL: string | undefined,
): Promise<void> {
  const user = await findUser(kernel.db, 'email', email)
  if (user === undefined || user.emailVerified) return
  await sendVerificationMail(kernel, user, { callbackURL })
}

/** The queue's side of `requestFirstLink`. Only the browser of the user whom the address belongs to is marked in the link. */
export async function mailFirstLink(kernel: Kernel, request: FirstLink): Promise<void> {
  const { email, userId, browser, callbackURL, isSignUp } = request
  const user = await findUser(kernel.db, 'email', email)
  if (user === undefined) return
  // Who has proven the address since needs no mail.
  if (user.emailVerified) return user.id === userId ? undefined : mailAlreadyRegistered(kernel, user)
  if (!isSignUp || kernel.config.auth.email.send_on_sign_up)
    await sendVerificationMail(kernel, user, { callbackURL, ...(user.id === userId && { browser }) })
}

async function mailAlreadyRegistered(kernel: Kernel, { id: userId, email }: User): Promise<void> {
  if (!(await kernel.limits.allows('mail_recipient', email))) return
  await atomically(kernel, async (kernel) => {
    const still = await stateAgain(kernel, { userId })
    if (still?.email === email) await sendMail(kernel, mails.alreadyRegistered(still))
  })
}
