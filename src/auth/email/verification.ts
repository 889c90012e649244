import { actWithoutProof } from '#identity/act.ts'
import type { SignUpMark } from '#identity/ticket-purposes.ts'
import { findUser, hasProvenEmail, isBanned, type User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { sendMail } from '#kernel/mail/mailer.ts'
import { ADMISSION_FAILURES, LINK_FAILURES, PASSWORD_POLICY_FAILURES } from '../errors.ts'
import { allowsMail } from '../mailing/allowance.ts'
import type { MailFlow } from '../mailing/flow.ts'
import { issueDecoy, withCode } from '../mailing/link-code.ts'
import { mailLink } from '../mailing/links.ts'
import type { FirstLink, MailRequest } from '../mailing/request.ts'
import { MAILS } from '../mailing/texts.ts'
import { confirmEmailLink } from './follow-link.ts'
import { type ProofTexts, plainView, proofView } from './proof-view.ts'

const VERIFICATION_TEXTS: ProofTexts = {
  title: 'verifyTitle',
  text: 'verifyText',
  button: 'verifyButton',
  proveText: 'proveText',
  chooseText: 'chooseText',
  chooseFirstText: 'chooseFirstText',
  chooseButton: 'chooseButton',
}

/** Proves the address of an account. */
export const VERIFY_EMAIL: MailFlow<'verify-email'> = {
  purpose: 'verify-email',
  lifetime: ({ auth }) => auth.email.verification_expires_in,
  parts: withCode,
  mail: MAILS.verifyEmail,
  endpoint: '/verify-email',
  page: {
    name: 'verify-email',
    setting: 'verify',
    summary: 'Confirm an address',
    failures: [...LINK_FAILURES, ...PASSWORD_POLICY_FAILURES, ...ADMISSION_FAILURES],
    fields: ['password', 'newPassword'],
    withoutSecondFactor: true,
    askAgain: 'askAgainVerify',
  },
  view: async (kernel, link, click) =>
    hasProvenEmail(link.user)
      ? plainView(VERIFICATION_TEXTS)
      : proofView(kernel, link, click, VERIFICATION_TEXTS),
  async act(kernel, _link, { token, click, values }) {
    const { admission } = await confirmEmailLink(kernel, token, click, values)
    return { title: 'verifyDone', text: 'verifyDoneText', admission }
  },
}

/** Of an address that is verified, and gets a code all the same. */
const CONFIRM_MAILBOX: MailFlow<'verify-email'> = {
  ...VERIFY_EMAIL,
  parts: () => ['code'],
  mail: MAILS.confirmMailbox,
}

/** Runs in the queue, so that the time of an answer does not show whether an address has an account. */
export async function mailVerification(
  kernel: Kernel,
  { email, callbackURL, source, asked }: MailRequest['verify-email'],
): Promise<void> {
  const user = await findUser(kernel.db, 'email', email)
  const isMailed =
    user !== undefined && (await sendVerificationMail(kernel, user, { callbackURL, source, asked }))
  if (!isMailed) await issueDecoy(kernel, VERIFY_EMAIL, { address: email, ...asked })
}

/** Without one of the two there is something left that a link does. */
const isVerified = (user: User): boolean => user.emailVerified && hasProvenEmail(user)

/** The queue's side of `requestFirstLink`. The link carries the browser's mark only when the address belongs to the user who was named. */
export async function mailFirstLink(kernel: Kernel, request: FirstLink): Promise<void> {
  const { email, userId, browser, session, callbackURL, isSignUp } = request
  const user = await findUser(kernel.db, 'email', email)
  if (user === undefined) return
  const isLinkDue = !isSignUp || kernel.config.auth.email.send_on_sign_up
  if (user.id !== userId && hasProvenEmail(user)) {
    await mailAlreadyRegistered(kernel, user)
    // A new account would have a code.
    if (isLinkDue) await issueDecoy(kernel, VERIFY_EMAIL, { address: email })
    return
  }
  // The user has verified the address in the meantime and needs no mail.
  if (isVerified(user) || !isLinkDue) return
  const mark = user.id === userId ? { browser, ...(session && { session }) } : {}
  await sendVerificationMail(kernel, user, { callbackURL, mark })
}

async function mailAlreadyRegistered(kernel: Kernel, { id: userId, email }: User): Promise<void> {
  if (!(await allowsMail(kernel, email))) return
  await actWithoutProof(kernel, userId, async (kernel, still) => {
    if (still.email === email) await sendMail(kernel, MAILS.alreadyRegistered(still))
  })
}

type VerificationMail = Pick<MailRequest['verify-email'], 'callbackURL' | 'source' | 'asked'> & {
  /** Where the password has just been set or shown. */
  readonly mark?: SignUpMark
}

/** False for a user who is verified and has not asked for a code, or who is banned. */
async function sendVerificationMail(
  kernel: Kernel,
  { id: userId, email: address }: User,
  { mark = {}, ...asking }: VerificationMail,
): Promise<boolean> {
  const isMailed = await actWithoutProof(kernel, userId, async (kernel, user) => {
    const flow = isVerified(user) ? CONFIRM_MAILBOX : VERIFY_EMAIL
    const isNeeded = flow === VERIFY_EMAIL || asking.asked !== undefined
    if (user.email !== address || !isNeeded || isBanned(user, kernel.now())) return false
    // The link outlives the session that sign-up or sign-in begins: the mail may be read on another device.
    const ticket = { userId, sessionId: null, address, payload: mark }
    await mailLink(kernel, flow, { ticket, recipient: user, callbackURL: undefined, ...asking })
    return true
  })
  return isMailed ?? false
}
