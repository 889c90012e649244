import { act } from '#identity/act.ts'
import { replaceMailedCode } from '#identity/mailed-codes.ts'
import { getMailbox, getStanding } from '#identity/standing.ts'
import { hasProvenEmail, type User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { sendMail } from '#kernel/mail/mailer.ts'
import { bySession } from '../door/access.ts'
import { fail } from '../errors.ts'
import { allowsMail } from '../mailing/allowance.ts'
import { MAILS } from '../mailing/texts.ts'
import { expectMailedCode, mailedCodeOwner, type Subject } from './checks.ts'
import { codeHashes, newMailedCode } from './codes.ts'
import { expectUnlocked, STRANGERS } from './lock.ts'
import { actOnPending, factorInSession, subjectOf, type VerificationPlace } from './verification.ts'

/** Milliseconds. */
const LIFETIME = 180_000

/** Mails a code that is valid in this session or pending sign-in only. A newer one replaces it. */
export function sendCode(kernel: Kernel, by: VerificationPlace): Promise<void> {
  if ('pending' in by)
    return actOnPending(kernel, by, async (kernel, user, { ticket, factor, subject }) => {
      const { methods, shown = [] } = ticket.payload
      if (!methods.includes('otp')) throw fail('OTP_NOT_ENABLED')
      expectMailedCode(factor, await getMailbox(kernel.db, user.id, shown))
      await mailCode(kernel, user, subject)
    })
  const { session } = by.caller
  return act(kernel, bySession(by.caller), async (kernel, { user }) => {
    const subject = await subjectOf(kernel, user, session)
    const factor = await factorInSession(kernel, user, session, 'otp')
    expectMailedCode(factor, await getStanding(kernel.db, session.id))
    await expectUnlocked(kernel, factor, subject.counters)
    await mailCode(kernel, user, subject)
  })
}

async function mailCode(kernel: Kernel, user: User, subject: Subject): Promise<void> {
  const { id: userId, email: address } = user
  if (!(await allowsMail(kernel, address, mailBucketOf(user, subject)))) return
  const code = newMailedCode(kernel.random)
  const [hash] = codeHashes(kernel, 'mail', { owner: mailedCodeOwner(userId, subject), code })
  const createdAt = kernel.now()
  const expiresAt = new Date(createdAt.getTime() + LIFETIME)
  await replaceMailedCode(kernel.db, { ...subject, userId, address }, { hash, createdAt, expiresAt })
  await sendMail(kernel, MAILS.secondFactorCode(user, { code, lifetime: LIFETIME }))
}

/** A stranger who knows the address can use up the bucket of links, and must not lock the user out by that. */
const mailBucketOf = (user: User, { counters: [bucket = STRANGERS] }: Subject): string =>
  bucket === STRANGERS || !hasProvenEmail(user) ? `second-factor:${user.email}` : bucket
