import { emailFrom } from '#identity/emails.ts'
import { isCheckable, renewPassword, verifyPassword } from '#identity/passwords.ts'
import { usernameFrom } from '#identity/usernames.ts'
import { findUserWithPassword, type User, type UserWithPassword } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type Admission, admit, type Visit } from '../admit.ts'
import { fail } from '../errors.ts'
import { requestMail } from '../mail-requests.ts'

export type SignedIn = Admission & { readonly user: User }

export async function signInWithEmail(
  kernel: Kernel,
  asked: { readonly email: string; readonly password: string },
  visit: Visit,
): Promise<SignedIn> {
  const email = emailFrom(asked.email)
  if (email === undefined) throw fail('INVALID_EMAIL')
  return signIn(kernel, { by: 'email', value: email, password: asked.password }, visit)
}

export async function signInWithUsername(
  kernel: Kernel,
  asked: { readonly username: string; readonly password: string },
  visit: Visit,
): Promise<SignedIn> {
  // A name that nobody can have is checked all the same: the answer's time tells nothing.
  const value = usernameFrom(asked.username)?.username ?? asked.username
  return signIn(kernel, { by: 'username', value, password: asked.password }, visit)
}

type Claim = { readonly by: 'email' | 'username'; readonly value: string; readonly password: string }

async function signIn(kernel: Kernel, { by, value, password }: Claim, visit: Visit): Promise<SignedIn> {
  kernel.heavy.expectRoom()
  const found = await findUserWithPassword(kernel, by, value)
  // Known and unknown accounts alike, so a 429 tells nothing either.
  const isRight = await kernel.limits.guess('sign_in_account', value, async () => {
    const [isRight] = await Promise.all([
      verifyPassword(kernel, found?.password ?? undefined, password),
      found === undefined ? undefined : offerReset(kernel, found),
    ])
    return isRight
  })
  if (found === undefined || !isRight) {
    throw fail(by === 'email' ? 'INVALID_EMAIL_OR_PASSWORD' : 'INVALID_USERNAME_OR_PASSWORD')
  }
  const admission = await admit(kernel, found, visit)
  if (found.password !== null)
    await renewPassword(kernel, { userId: found.id, stored: found.password, password })
  return { ...admission, user: found }
}

/**
 * A stored hash that is too costly to check lets no one in. The answer is that of a wrong password, which tells a stranger
 * nothing, and comes no later; the way out goes to the address of the account.
 */
async function offerReset(kernel: Kernel, { password, email }: UserWithPassword): Promise<void> {
  if (password !== null && !isCheckable(kernel.config, password))
    await requestMail(kernel, { flow: 'renew', email })
}
