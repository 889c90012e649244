import { act } from '#identity/act.ts'
import { redeemCode, tryCode } from '#identity/link-codes.ts'
import { tell } from '#identity/tell.ts'
import type { WaitingPassword } from '#identity/ticket-purposes.ts'
import { deleteTicketsFor } from '#identity/tickets.ts'
import { findUser, hasProvenEmail, type User } from '#identity/users.ts'
import type { Config } from '#kernel/config/config.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { sendMail } from '#kernel/mail/mailer.ts'
import { expectOpenSignUp } from '../anonymous/upgrade.ts'
import { fieldsOfKnown } from '../custom-fields/acceptable.ts'
import { bySession, type Caller } from '../door/access.ts'
import { expectShown, recordShown, standsForMailbox } from '../door/demands.ts'
import { fail, LINK_FAILURES, PASSWORD_POLICY_FAILURES } from '../errors.ts'
import { noticeTo } from '../mailing/allowance.ts'
import type { LinkMail } from '../mailing/flow.ts'
import { type CodeBrowser, withCode } from '../mailing/link-code.ts'
import { mailLink } from '../mailing/links.ts'
import { type MailRequest, requestMail } from '../mailing/request.ts'
import { MAILS } from '../mailing/texts.ts'
import { codeTry, expectRight, refusedCode, type TypedCode } from '../mailing/typed-code.ts'
import { checkPassword } from '../password/password.ts'
import { showCode } from '../two-factor/verification.ts'
import { acceptableEmail } from '../user-fields.ts'

/** The new address, and where its link leads in the end. */
type Target = {
  readonly newEmail: string
  readonly callbackURL?: string | undefined
  /** The change is completed by a code. */
  readonly asked?: CodeBrowser | undefined
}

type ChangeEmail = Target & {
  readonly password?: string | undefined
  /** Of the second factor. */
  readonly code?: string | undefined
  /** Of a mail to the old address: it allows the change. */
  readonly otp?: TypedCode | undefined
}

/**
 * Begins a change of address and ends one that was begun before. A session could be stolen, so a proven address has to allow the
 * change by a link; the password makes that link unnecessary, together with a code of the second factor if there is one, unless it is new.
 * Of an unproven account a proof is demanded. The answer does not show whether the new address has an account.
 */
export async function changeEmail(kernel: Kernel, caller: Caller, asked: ChangeEmail): Promise<void> {
  const newEmail = acceptableEmail(asked.newEmail)
  if (newEmail === caller.user.email) throw fail('EMAIL_IS_THE_SAME')
  const { password, code, otp } = asked
  const proven = password === undefined ? caller : await checkPassword(kernel, caller, password)
  await act(kernel, bySession(proven), async (kernel, { user }) => {
    if (user.isAnonymous) expectMayBecomeKnown(kernel, user)
    const factor = code === undefined ? [] : [await showCode(kernel, user, caller.session, code)]
    const shown = [...(password === undefined ? [] : (['password'] as const)), ...factor]
    const standing = await recordShown(kernel, caller.session, shown)
    if (!hasProvenEmail(user)) await expectShown(kernel, caller.session, 'changeUnprovenEmail')
    const from = { user, sessionId: caller.session.id }
    const to = { newEmail, callbackURL: asked.callbackURL, asked: asked.asked }
    if (otp !== undefined) await redeemConfirmation(kernel, user, otp, newEmail)
    await deleteTicketsFor(kernel.db, user.id, CHANGE)
    await tell(kernel, 'email.change_requested', { targetId: user.id })
    const isAllowed = otp !== undefined || !hasProvenEmail(user) || standsForMailbox(kernel, standing, shown)
    await (isAllowed ? mailNewAddress(kernel, from, to) : mailOldAddress(kernel, from, to))
  })
}

/** Before a mail is sent that could not be followed. */
function expectMayBecomeKnown(kernel: Kernel, user: User): void {
  expectOpenSignUp(kernel, 'email')
  fieldsOfKnown(kernel, user)
}

const CHANGE = ['confirm-change-email', 'change-email'] as const

const CONFIRMING = ['confirm-change-email', 'verify-email'] as const

/** A code of the mail about this change, or one that was asked for to confirm the address. Throws for any other. */
async function redeemConfirmation(
  kernel: Kernel,
  user: User,
  otp: TypedCode,
  newEmail: string,
): Promise<void> {
  const typed = codeTry(kernel, CONFIRMING, { ...otp, address: user.email })
  const right = expectRight(kernel, user, await tryCode(kernel, typed, user))
  const { purpose, payload } = right.ticket
  const isOfOther = purpose === 'confirm-change-email' && (payload as Target).newEmail !== newEmail
  if (isOfOther) throw refusedCode(user, 'INVALID_OTP')
  await redeemCode(kernel.db, right)
}

/** The user whose address changes, and the session that asked: the links end with it. */
type Origin = { readonly user: User; readonly sessionId: string | null }

function mailOldAddress(
  kernel: Kernel,
  { user, sessionId }: Origin,
  { newEmail, callbackURL, asked }: Target,
): Promise<void> {
  const payload = callbackURL === undefined ? { newEmail } : { newEmail, callbackURL }
  const ticket = { userId: user.id, sessionId, address: user.email, payload }
  return mailLink(kernel, CONFIRM_CHANGE_MAIL, { ticket, recipient: user, callbackURL, asked })
}

/** Begins to add an address and a password to an anonymous user, and ends an attempt that was begun before. */
export async function beginNewAddress(
  kernel: Kernel,
  from: Origin,
  to: Target & { readonly waiting: WaitingPassword },
): Promise<void> {
  await deleteTicketsFor(kernel.db, from.user.id, CHANGE)
  await tell(kernel, 'email.change_requested', { targetId: from.user.id })
  await mailNewAddress(kernel, from, to)
}

/**
 * The old address gets a notice if it is proven; the new one gets its link only when it has no account. The queue decides that, so
 * that the time of the answer does not show it.
 */
export async function mailNewAddress(
  kernel: Kernel,
  { user, sessionId }: Origin,
  { newEmail: address, callbackURL, asked, waiting }: Target & { readonly waiting?: WaitingPassword },
): Promise<User> {
  await noticeTo(kernel, user, MAILS.emailIsChanging(user, address))
  await mailLink(kernel, CHANGE_MAIL, {
    ticket: { userId: user.id, sessionId, address, payload: waiting ?? {} },
    recipient: user,
    callbackURL,
    asked,
    deliver: (kernel, mail) => requestMail(kernel, 'change-email', { email: address, mail }),
  })
  return user
}

/** The queue's side. A link that is not sent opens nothing, since its token is known to no one. */
export async function mailUnlessTaken(
  kernel: Kernel,
  { email, mail }: MailRequest['change-email'],
): Promise<void> {
  if ((await findUser(kernel.db, 'email', email)) === undefined) await sendMail(kernel, mail)
}

/** Common to the mails of both steps of a change. */
const CHANGE_LINK = {
  lifetime: ({ auth }: Config) => auth.email.verification_expires_in,
  parts: withCode,
  endpoint: '/verify-email',
  page: {
    name: 'change-email',
    setting: 'change',
    summary: 'Change an address',
    failures: [...LINK_FAILURES, ...PASSWORD_POLICY_FAILURES],
    fields: ['password', 'newPassword'],
    askAgain: 'askAgainChange',
  },
} as const

/** Allows the change, by a link to the old address. */
export const CONFIRM_CHANGE_MAIL: LinkMail<'confirm-change-email'> = {
  ...CHANGE_LINK,
  purpose: 'confirm-change-email',
  mail: MAILS.confirmChangeEmail,
}

/** Completes the change, by a link to the new address. */
export const CHANGE_MAIL: LinkMail<'change-email'> = {
  ...CHANGE_LINK,
  purpose: 'change-email',
  mail: MAILS.changeEmail,
}
