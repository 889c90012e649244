import { stateAgain } from '#identity/proof.ts'
import { issueTicket } from '#identity/tickets.ts'
import { tokenHash } from '#identity/tokens.ts'
import { isBanned, type User } from '#identity/users.ts'
import { atomically, type Kernel } from '#kernel/kernel.ts'
import { sendMail } from '#kernel/mail/mailer.ts'
import { mails } from '../mails.ts'
import { authUrl } from '../urls.ts'

/** What a ticket keeps of the cookie that marks a browser. */
export const browserMark = (cookie: string): string => tokenHash(cookie).toString('base64url')

type Mark = { readonly callbackURL?: string | undefined; readonly browser?: string | undefined }

/**
 * Mails a link that proves the address, unless this recipient has had too many already. `browser` is the hash of a
 * cookie that only the browser has which has just shown the password.
 */
export async function sendVerificationMail(kernel: Kernel, user: User, more: Mark = {}): Promise<void> {
  const { id: userId, email: address } = user
  if (!(await kernel.limits.allows('mail_recipient', address))) return
  await atomically(kernel, async (kernel) => {
    const still = await stateAgain(kernel, { userId })
    const isDue = still?.email === address && !still.emailVerified && !isBanned(still, kernel.now())
    if (isDue) await mailLink(kernel, still, more)
  })
}

async function mailLink(kernel: Kernel, user: User, more: Mark): Promise<void> {
  const life = kernel.config.auth.email.verification_expires_in
  const payload = more.browser === undefined ? {} : { browser: more.browser }
  const token = await issueTicket(kernel, 'verify-email', {
    userId: user.id,
    // A link of sign-up or sign-in outlives the session that begins there: the mail may be read on another device.
    sessionId: null,
    address: user.email,
    life,
    payload,
  })
  const url = authUrl(kernel, '/verify-email', { token, callbackURL: more.callbackURL })
  await sendMail(kernel, mails.verifyEmail(user, url, life))
}
