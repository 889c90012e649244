import { insertHiddenSignUp, lockUserWithEmail } from '#identity/hidden-sign-ups.ts'
import { actOnProof, stateAgain } from '#identity/proof.ts'
import type { NewUser, User } from '#identity/users.ts'
import { isConflict } from '#kernel/db/conflicts.ts'
import { atomically, type Kernel } from '#kernel/kernel.ts'
import { sendMail } from '#kernel/mail/mailer.ts'
import { randomToken } from '#kernel/random.ts'
import type { Visit } from './admit.ts'
import { sendVerificationMail } from './email/verification.ts'
import { fail } from './errors.ts'
import { mails } from './mails.ts'

/**
 * Sign-up with an address that has an account, where that is hidden: nothing of the account changes, its owner gets a mail, and
 * sign-in and usernames behave from then on as if the new account were there.
 */
export async function signUpHidden(
  kernel: Kernel,
  asked: NewUser & { readonly password: string },
  visit: Visit,
): Promise<void> {
  try {
    await atomically(kernel, async (kernel) => {
      const owner = await lockUserWithEmail(kernel.db, asked.email)
      if (owner === undefined) return
      await insertHiddenSignUp(kernel.db, owner, asked)
      if (owner.emailVerified || kernel.config.auth.email.send_on_sign_up)
        await mailOwner(kernel, owner, visit)
    })
  } catch (error) {
    const isTaken = ['user_username_key', 'hidden_sign_up_username_key'].some((key) => isConflict(error, key))
    throw isTaken ? fail('USERNAME_IS_ALREADY_TAKEN') : error
  }
  if (kernel.config.auth.email.send_on_sign_up) visit.markBrowser(randomToken(kernel.random))
}

/** Sign-in with a password that was chosen so: what `admit` says of an address that is not proven, as long and with a mail. */
export async function refuseHidden(kernel: Kernel, userId: string, visit: Visit): Promise<never> {
  const refusal = () => fail('EMAIL_NOT_VERIFIED')
  const owner = await actOnProof(kernel, { userId }, refusal, async (_kernel, user) => user)
  visit.markBrowser(randomToken(kernel.random))
  await mailOwner(kernel, owner, visit)
  throw refusal()
}

/** An address that is not proven gets the link that the new account would; it proves the account that is there. */
async function mailOwner(kernel: Kernel, owner: User, { callbackURL }: Visit): Promise<void> {
  if (!owner.emailVerified) return sendVerificationMail(kernel, owner, { callbackURL })
  if (!(await kernel.limits.allows('mail_recipient', owner.email))) return
  await atomically(kernel, async (kernel) => {
    const still = await stateAgain(kernel, { userId: owner.id })
    if (still?.email === owner.email) await sendMail(kernel, mails.alreadyRegistered(still))
  })
}
