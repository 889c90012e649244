import { issueTicket } from '#identity/tickets.ts'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { sendMail } from '#kernel/mail/mailer.ts'
import { composeMail } from '#kernel/mail/messages.ts'
import { authUrl } from '../urls.ts'

/** Mails a link that proves the address, unless this recipient has had too many already. */
export async function sendVerificationMail(kernel: Kernel, user: User, callbackURL?: string): Promise<void> {
  if (!(await kernel.limits.allows('mail_recipient', user.email))) return
  const life = kernel.config.auth.email.verification_expires_in
  const token = await issueTicket(kernel, { purpose: 'verify-email', userId: user.id, life })
  const url = authUrl(kernel, '/verify-email', { token, callbackURL })
  const minutes = Math.round(life / 60_000)
  await sendMail(
    kernel,
    composeMail({
      to: user.email,
      subject: 'Verify your email address',
      paragraphs: [
        `Hello ${user.name},`,
        'please confirm that this address is yours.',
        `The link works once, for ${minutes} minutes. If you did not ask for it, ignore this mail.`,
      ],
      action: { label: 'Verify email', url },
    }),
  )
}
