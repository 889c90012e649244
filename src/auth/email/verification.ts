import { actWithoutProof } from '#identity/act.ts'
import type { SignUpMark } from '#identity/tickets.ts'
import { findUser, hasProvenEmail, isBanned, type User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { sendMail } from '#kernel/mail/mailer.ts'
import { ADMISSION_FAILURES, LINK_FAILURES, PASSWORD_POLICY_FAILURES } from '../errors.ts'
import { allowsMail } from '../mailing/allowance.ts'
import type { MailFlow } from '../mailing/flow.ts'
import { mailLink } from '../mailing/links.ts'
import type { FirstLink, MailRequest } from '../mailing/request.ts'
import { MAILS } from '../mailing/texts.ts'
import { confirmEmailLink } from './email.ts'
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

/** Runs in the queue, so that the time of an answer does not show whether an address has an account. */
export async function mailVerification(
  kernel: Kernel,
  { email, callbackURL }: MailRequest['verify-email'],
): Promise<void> {
  const user = await findUser(kernel.db, 'email', email)
  if (user === undefined || isVerified(user)) return
  await sendVerificationMail(kernel, user, callbackURL)
}

/** Without one of the two there is something left that a link does. */
const isVerified = (user: User): boolean => user.emailVerified && hasProvenEmail(user)

/** The queue's side of `requestFirstLink`. The link carries the browser's mark only when the address belongs to the user who was named. */
export async function mailFirstLink(kernel: Kernel, request: FirstLink): Promise<void> {
  const { email, userId, browser, session, callbackURL, isSignUp } = request
  const user = await findUser(kernel.db, 'email', email)
  if (user === undefined) return
  if (user.id !== userId && hasProvenEmail(user)) return mailAlreadyRegistered(kernel, user)
  // The user has verified the address in the meantime and needs no mail.
  if (isVerified(user)) return
  if (!isSignUp || kernel.config.auth.email.send_on_sign_up)
    await sendVerificationMail(
      kernel,
      user,
      callbackURL,
      user.id === userId ? { browser, ...(session && { session }) } : {},
    )
}

async function mailAlreadyRegistered(kernel: Kernel, { id: userId, email }: User): Promise<void> {
  if (!(await allowsMail(kernel, email))) return
  await actWithoutProof(kernel, userId, async (kernel, still) => {
    if (still.email === email) await sendMail(kernel, MAILS.alreadyRegistered(still))
  })
}

/** `payload`: where the password has just been set or shown. */
async function sendVerificationMail(
  kernel: Kernel,
  { id: userId, email: address }: User,
  callbackURL: string | undefined,
  payload: SignUpMark = {},
): Promise<void> {
  await actWithoutProof(kernel, userId, async (kernel, user) => {
    if (user.email !== address || isVerified(user) || isBanned(user, kernel.now())) return
    // The link outlives the session that sign-up or sign-in begins: the mail may be read on another device.
    const ticket = { userId, sessionId: null, address, payload }
    await mailLink(kernel, VERIFY_EMAIL, { ticket, recipient: user, callbackURL })
  })
}
