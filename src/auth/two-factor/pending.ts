import { issueTicket } from '#identity/tickets.ts'
import { rotateTrustedDevice } from '#identity/trusted-devices.ts'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken } from '#kernel/random.ts'
import { fail } from '../errors.ts'
import type { SignInContext } from '../sign-in-context.ts'
import type { Way } from '../way.ts'
import { findFactor } from './store.ts'

/** A second factor that a sign-in can be completed with, besides a backup code. */
export type SecondFactorMethod = 'totp' | 'otp'

/** A sign-in that waits for its second factor. There is no session yet. */
export type PendingSecondFactor = {
  /** Valid for the endpoints of the second factor only. */
  readonly pendingToken: string
  readonly methods: readonly SecondFactorMethod[]
}

/** So that no one takes it for a session token. */
export const PENDING_PREFIX = '2fa_'
/** Milliseconds. */
export const PENDING_LIFETIME = 600_000
const DAY = 86_400_000
/** Of a trusted device, from its last sign-in; milliseconds. */
export const TRUST_LIFETIME = 30 * DAY

/** Begins the second step of a sign-in, in the transaction that has checked the first one. */
export async function beginSecondFactor(
  kernel: Kernel,
  { id: userId, email: address }: User,
  { way, remember }: SignInContext & { readonly way: Way },
): Promise<PendingSecondFactor> {
  const methods = await methodsFor(kernel, userId, way)
  const token = await issueTicket(kernel, 'second-factor', {
    ...{ userId, address, sessionId: null },
    lifetime: PENDING_LIFETIME,
    payload: { methods, remember },
  })
  return { pendingToken: `${PENDING_PREFIX}${token}`, methods }
}

/** The mailbox counts once: a code by mail is no second factor after a sign-in by mail, or after a reset by mail. */
async function methodsFor(kernel: Kernel, userId: string, way: Way): Promise<readonly SecondFactorMethod[]> {
  const factor = await findFactor(kernel.db, userId, true)
  if (factor === undefined) return []
  if (factor.method === 'otp') {
    if (way === 'mail') throw fail('PASSWORD_SIGN_IN_REQUIRED')
    return ['otp']
  }
  const hasCounted = factor.mailCountedUntil !== null && factor.mailCountedUntil > kernel.now()
  return way === 'mail' || hasCounted ? ['totp'] : ['totp', 'otp']
}

/** The new token of the browser's trusted device; undefined when the browser is none of this user's. */
export async function renewTrustedDevice(
  kernel: Kernel,
  { id: userId }: User,
  { trustedDevice }: SignInContext,
): Promise<string | undefined> {
  if (trustedDevice === undefined) return undefined
  const now = kernel.now()
  const renewed = { token: randomToken(kernel.random), expiresAt: trustedUntil(now), now }
  return (await rotateTrustedDevice(kernel.db, userId, trustedDevice, renewed)) ? renewed.token : undefined
}

export const trustedUntil = (now: Date): Date => new Date(now.getTime() + TRUST_LIFETIME)
