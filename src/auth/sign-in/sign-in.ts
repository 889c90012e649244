import { emailFrom } from '#identity/emails.ts'
import { findHiddenSignUps } from '#identity/hidden-sign-ups.ts'
import { guessHiddenPassword, guessPassword, isCheckable, renewPassword } from '#identity/passwords.ts'
import { usernameFrom } from '#identity/usernames.ts'
import { findUserWithPassword, isBanned, type UserWithPassword } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type Admission, admit, type Visit } from '../admit.ts'
import { fail } from '../errors.ts'
import { refuseHidden } from '../hidden-sign-ups.ts'
import { requestMail } from '../mail-requests.ts'

export async function signInWithEmail(
  kernel: Kernel,
  asked: { readonly email: string; readonly password: string },
  visit: Visit,
): Promise<Admission> {
  const email = emailFrom(asked.email)
  if (email === undefined) throw fail('INVALID_EMAIL')
  return signIn(kernel, { by: 'email', value: email, password: asked.password }, visit)
}

export async function signInWithUsername(
  kernel: Kernel,
  asked: { readonly username: string; readonly password: string },
  visit: Visit,
): Promise<Admission> {
  // A name that nobody can have is checked all the same: the answer's time tells nothing.
  const value = usernameFrom(asked.username)?.username ?? asked.username
  return signIn(kernel, { by: 'username', value, password: asked.password }, visit)
}

type Claim = { readonly by: 'email' | 'username'; readonly value: string; readonly password: string }

/** Another sign-in may renew the hash while this one checks the password against it: then it is checked once more. */
async function signIn(kernel: Kernel, claim: Claim, visit: Visit): Promise<Admission> {
  const changed = wrong(claim)
  try {
    return await signInOnce(kernel, claim, visit, changed)
  } catch (error) {
    if (error !== changed) throw error
    return await signInOnce(kernel, claim, visit, changed)
  }
}

const wrong = ({ by }: Claim) =>
  fail(by === 'email' ? 'INVALID_EMAIL_OR_PASSWORD' : 'INVALID_USERNAME_OR_PASSWORD')

/** Throws `changed` when the password was right, and its hash is not the stored one any more. */
async function signInOnce(kernel: Kernel, claim: Claim, visit: Visit, changed: Error): Promise<Admission> {
  const { by, value, password } = claim
  kernel.heavy.expectRoom()
  const found = await findUserWithPassword(kernel, by, value)
  const stored = found?.password ?? undefined
  const { isRight, hiddenOf } = await guess(kernel, claim, found)
  if (!isRight && found !== undefined) await offerReset(kernel, found)
  if (hiddenOf !== undefined) return refuseHidden(kernel, hiddenOf, visit)
  if (found === undefined || stored === undefined || !isRight) throw wrong(claim)
  const { id: userId } = found
  if (found.mustChangePassword === true) await refuseUntilChanged(kernel, found)
  const admission = await admit(kernel, { userId, password: stored }, () => changed, visit)
  await renewPassword(kernel, { userId, stored, password })
  return admission
}

/** `hiddenOf`: the password is of a hidden sign-up with the address of this user. */
type Guessed = { readonly isRight: boolean; readonly hiddenOf?: string }

async function guess(
  kernel: Kernel,
  { by, value, password }: Claim,
  found: UserWithPassword | undefined,
): Promise<Guessed> {
  const claimed = { account: found?.email ?? value, stored: found?.password ?? undefined }
  if (!kernel.config.auth.hide_registered_emails)
    return { isRight: await guessPassword(kernel, claimed, password) }
  const [first, second] = await findHiddenSignUps(kernel, by, value)
  const owner = found?.id ?? first?.userId
  const isProven = found?.emailVerified === true
  // A username belongs to one account or one hidden sign-up; an address to an account and what is hidden beside it.
  const outcome = await guessHiddenPassword(
    kernel,
    by === 'email'
      ? { ...claimed, isProven, hidden: [first?.password, second?.password] }
      : {
          account: found?.email ?? first?.email ?? value,
          stored: claimed.stored ?? first?.password,
          isProven,
          hidden: [],
        },
    password,
  )
  if (outcome === 'wrong' || owner === undefined) return { isRight: false }
  return outcome === 'right' && found !== undefined ? { isRight: true } : { isRight: false, hiddenOf: owner }
}

/**
 * A stored hash that is too costly to check lets no one in. The answer is that of a wrong password, which tells a stranger
 * nothing; the way out goes to the address of the account.
 */
async function offerReset(kernel: Kernel, { password, email }: UserWithPassword): Promise<void> {
  if (password !== null && !isCheckable(kernel.config, password))
    await requestMail(kernel, { flow: 'renew', email })
}

/** Another person may have set this password: it is chosen anew through the mail of the address. */
async function refuseUntilChanged(kernel: Kernel, user: UserWithPassword): Promise<never> {
  if (isBanned(user, kernel.now())) throw fail('BANNED_USER')
  await requestMail(kernel, { flow: 'change', email: user.email })
  throw fail('PASSWORD_CHANGE_REQUIRED')
}
