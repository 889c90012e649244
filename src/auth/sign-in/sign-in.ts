import { findHiddenPassword, findHiddenUsername } from '#identity/hidden-sign-ups.ts'
import type { Source } from '#identity/known-devices.ts'
import {
  attemptHiddenPassword,
  attemptPassword,
  hashForAddress,
  isCheckable,
  rehashPassword,
} from '#identity/passwords.ts'
import { usernameFrom } from '#identity/usernames.ts'
import { findUserWithPassword, hasProvenEmail, isBanned, type UserWithPassword } from '#identity/users.ts'
import { recordFailure } from '#kernel/audit/record-failure.ts'
import { Failure } from '#kernel/errors.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type Admission, admit } from '../door/admit.ts'
import { refuseHidden } from '../door/hidden-sign-ups.ts'
import type { SignInContext } from '../door/sign-in-context.ts'
import { fail } from '../errors.ts'
import { requestMail } from '../mailing/request.ts'
import { acceptableEmail } from '../user-fields.ts'

export async function signInWithEmail(
  kernel: Kernel,
  asked: { readonly email: string; readonly password: string },
  context: SignInContext,
): Promise<Admission> {
  const value = acceptableEmail(asked.email)
  return signIn(kernel, { by: 'email', value, password: asked.password }, context)
}

export async function signInWithUsername(
  kernel: Kernel,
  asked: { readonly username: string; readonly password: string },
  context: SignInContext,
): Promise<Admission> {
  // An impossible username is checked all the same, so that the time of the answer does not show it.
  const value = usernameFrom(asked.username)?.username ?? asked.username
  return signIn(kernel, { by: 'username', value, password: asked.password }, context)
}

type Claim = { readonly by: 'email' | 'username'; readonly value: string; readonly password: string }
/** A claim and the device that it comes from. */
type SentClaim = Claim & Pick<SignInContext, 'knownDevice'>

/** The password was right, but its hash is not the stored one any more. */
const CHANGED = new Error('the stored hash has changed')

/** Checks the password a second time when another sign-in has replaced the stored hash during the first check. */
async function signIn(kernel: Kernel, claim: Claim, context: SignInContext): Promise<Admission> {
  try {
    return await signInOnce(kernel, claim, context)
  } catch (error) {
    if (error !== CHANGED) throw error
  }
  try {
    return await signInOnce(kernel, claim, context)
  } catch (error) {
    throw error === CHANGED ? wrongPassword(claim) : error
  }
}

const wrongPassword = ({ by }: Claim) =>
  fail(by === 'email' ? 'INVALID_EMAIL_OR_PASSWORD' : 'INVALID_USERNAME_OR_PASSWORD')

async function signInOnce(kernel: Kernel, claim: Claim, context: SignInContext): Promise<Admission> {
  kernel.hashQueue.expectRoom()
  const found = await findUserWithPassword(kernel, claim.by, claim.value)
  try {
    return await signInAs(kernel, { ...claim, found }, context)
  } catch (error) {
    if (error instanceof Failure && REFUSALS.has(error.code))
      await recordFailure(kernel, 'sign_in.failed', { targetId: found?.id, reason: error.code })
    throw error
  }
}

/** Failures of a sign-in that was judged. One that a limit refused is not recorded. */
const REFUSALS: ReadonlySet<string> = new Set([
  'INVALID_EMAIL_OR_PASSWORD',
  'INVALID_USERNAME_OR_PASSWORD',
  'BANNED_USER',
  'EMAIL_NOT_VERIFIED',
  'PASSWORD_CHANGE_REQUIRED',
])

async function signInAs(
  kernel: Kernel,
  { found, ...claim }: Claim & { readonly found: UserWithPassword | undefined },
  context: SignInContext,
): Promise<Admission> {
  const { password } = claim
  const source = { knownDevice: context.knownDevice }
  const stored = found?.password ?? undefined
  const { isRight, hiddenOf } = await checkClaim(
    kernel,
    { ...claim, knownDevice: context.knownDevice },
    found,
  )
  if (!isRight && found !== undefined) await offerReset(kernel, found, source)
  if (hiddenOf !== undefined) return refuseHidden(kernel, hiddenOf, context)
  if (found === undefined || stored === undefined || !isRight) throw wrongPassword(claim)
  const { id: userId } = found
  if (found.mustChangePassword === true) await refuseUntilChanged(kernel, found, source)
  const proof = { userId, password: stored }
  const entrance = { way: 'password', shown: ['password'], proof, refuse: () => CHANGED } as const
  const admission = await admit(kernel, entrance, context)
  await rehashPassword(kernel, { userId, stored, password })
  return admission
}

/** `hiddenOf`: the password belongs to a hidden sign-up with the address of this user. */
type PasswordCheck = { readonly isRight: boolean; readonly hiddenOf?: string }

async function checkClaim(
  kernel: Kernel,
  claim: SentClaim,
  found: UserWithPassword | undefined,
): Promise<PasswordCheck> {
  if (kernel.config.auth.hide_registered_emails)
    return claim.by === 'email' ? checkByEmail(kernel, claim, found) : checkByUsername(kernel, claim, found)
  const claimed = { account: found?.email ?? claim.value, ...storedOf(found, claim) }
  return { isRight: await attemptPassword(kernel, claimed, claim.password) }
}

/** An address may have an account and hidden sign-ups. Two hashes are computed in every case. */
async function checkByEmail(
  kernel: Kernel,
  claim: SentClaim,
  found: UserWithPassword | undefined,
): Promise<PasswordCheck> {
  const { value: email, password } = claim
  const isHidden = async () => {
    const hash = await hashForAddress(kernel, email, password)
    return (await findHiddenPassword(kernel, email, hash)) !== undefined
  }
  const claimed = { account: email, ...storedOf(found, claim), isHidden }
  const isProven = found !== undefined && hasProvenEmail(found)
  const outcome = await attemptHiddenPassword(kernel, { ...claimed, isProven }, password)
  if (outcome === 'hidden' && found !== undefined) return { isRight: false, hiddenOf: found.id }
  return { isRight: outcome === 'right' }
}

/** A username belongs to one account or to one hidden sign-up. */
async function checkByUsername(
  kernel: Kernel,
  claim: SentClaim,
  found: UserWithPassword | undefined,
): Promise<PasswordCheck> {
  const { value: username, password } = claim
  const hidden = await findHiddenUsername(kernel, username)
  const claimed = {
    account: found?.email ?? hidden?.email ?? username,
    ...storedOf(found, claim),
    stored: (found ?? hidden)?.password ?? undefined,
    isHidden: async () => false,
  }
  const isProven = found !== undefined && hasProvenEmail(found)
  const isRight = (await attemptHiddenPassword(kernel, { ...claimed, isProven }, password)) === 'right'
  return isRight && hidden !== undefined ? { isRight: false, hiddenOf: hidden.userId } : { isRight }
}

const storedOf = (found: UserWithPassword | undefined, { knownDevice }: SentClaim) => ({
  userId: found?.id,
  stored: found?.password ?? undefined,
  source: { knownDevice },
})

/**
 * A stored hash that is too costly to check signs no one in. The answer is that of a wrong password, so that it shows nothing, and
 * a reset link is mailed to the address of the account.
 */
async function offerReset(
  kernel: Kernel,
  { password, email }: UserWithPassword,
  source: Source,
): Promise<void> {
  if (password !== null && !isCheckable(kernel.config, password))
    await requestMail(kernel, 'renew-password', { email, source })
}

/** Another person may have set this password, so a new one has to be chosen by a mailed link. */
async function refuseUntilChanged(kernel: Kernel, user: UserWithPassword, source: Source): Promise<never> {
  if (isBanned(user, kernel.now())) throw fail('BANNED_USER')
  await requestMail(kernel, 'change-password', { email: user.email, source })
  throw fail('PASSWORD_CHANGE_REQUIRED')
}
