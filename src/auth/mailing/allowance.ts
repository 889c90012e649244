import { ownBucket, type Source } from '#identity/known-devices.ts'
import { hasProvenEmail, type User } from '#identity/users.ts'
import { atTheEnd, type Kernel } from '#kernel/kernel.ts'
import { type Mail, sendMail } from '#kernel/mail/mailer.ts'

/**
 * May another mail that was asked for go to this address? It counts in a bucket, and for the address: ten and thirty an hour. Without a bucket
 * it is that of strangers, who name the address.
 */
export const allowsMail = async ({ limits }: Kernel, address: string, bucket = address): Promise<boolean> =>
  (await limits.allows('mail_recipient', bucket)) && (await limits.allows('mail_recipient_total', address))

/**
 * The same for a mail that the user may have asked for. A known device and a live session have mails of their own for their own proven
 * address, so that strangers do not use up those of a recovery.
 */
export async function allowsMailFrom(
  kernel: Kernel,
  user: Pick<User, 'id' | 'email' | 'emailProvenAt'>,
  source: Source,
): Promise<boolean> {
  const ownersBucket = hasProvenEmail(user) ? await ownBucket(kernel, user.id, source) : undefined
  return allowsMail(kernel, user.email, ownersBucket)
}

/**
 * Tells a user by mail that the account has changed. This is the only way to do so, and it decides: an unproven address may be a stranger's, who
 * gets none. Notices have a bucket of their own. They also count for the address, whose limit does not refuse them: else whoever asks for thirty
 * mails before a change would silence its notice. What is counted stays so after a rollback, so that it is counted at the end of the transaction.
 */
export async function noticeTo(
  kernel: Kernel,
  user: Pick<User, 'email' | 'emailProvenAt'>,
  mail: Mail,
): Promise<void> {
  const { limits } = kernel
  if (!hasProvenEmail(user)) return
  await atTheEnd(kernel, async () => {
    if (!(await limits.allows('mail_recipient', `notice:${user.email}`))) return
    await limits.allows('mail_recipient_total', user.email)
    await sendMail(kernel, mail)
  })
}
