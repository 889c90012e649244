import type { User } from '#identity/users.ts'
import { hasProvenEmail } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type Mail, sendMail } from '#kernel/mail/mailer.ts'

/**
 * May another mail go to this address? One of the bucket that it counts in, and one of the address: ten and thirty an hour. Without a bucket it
 * is that of strangers, who name the address.
 */
export const allowsMail = async ({ limits }: Kernel, address: string, bucket = address): Promise<boolean> =>
  (await limits.allows('mail_recipient', bucket)) && (await limits.allows('mail_recipient_total', address))

/**
 * Tells a user by mail that the account has changed. This is the only way to do so, and it decides: an unproven address may be a stranger's, who
 * gets none. Notices have a bucket of their own, so that a stranger's mails do not silence them.
 */
export async function noticeTo(
  kernel: Kernel,
  user: Pick<User, 'email' | 'emailProvenAt'>,
  mail: Mail,
): Promise<void> {
  if (!hasProvenEmail(user)) return
  if (await allowsMail(kernel, user.email, `notice:${user.email}`)) await sendMail(kernel, mail)
}
