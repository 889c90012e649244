import { emailFrom } from '#identity/emails.ts'
import { guessPassword, isCheckable, renewPassword } from '#identity/passwords.ts'
import { usernameFrom } from '#identity/usernames.ts'
import { findUserWithPassword, type UserWithPassword } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type Admission, admit, type Visit } from '../admit.ts'
import { fail } from '../errors.ts'
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
  const isRight = await guessPassword(kernel, { userId: found?.id, name: value, stored }, password)
  if (!isRight && found !== undefined) await offerReset(kernel, found)
  if (found === undefined || stored === undefined || !isRight) throw wrong(claim)
  const { id: userId } = found
  const admission = await admit(kernel, { userId, password: stored }, () => changed, visit)
  await renewPassword(kernel, { userId, stored, password })
  return admission
}

/**
 * A stored hash that is too costly to check lets no one in. The answer is that of a wrong password, which tells a stranger
 * nothing; the way out goes to the address of the account.
 */
async function offerReset(kernel: Kernel, { password, email }: UserWithPassword): Promise<void> {
  if (password !== null && !isCheckable(kernel.config, password))
    await requestMail(kernel, { flow: 'renew', email })
}
