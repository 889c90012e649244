import type { FastifyRequest } from 'fastify'
import { hasMailCounted, takesMailedCodes } from '#identity/mailbox.ts'
import type { Shown } from '#identity/shown.ts'
import { getMailbox } from '#identity/standing.ts'
import { issueTicket } from '#identity/tickets.ts'
import { tokenHash } from '#identity/tokens.ts'
import { insertTrustedDevice, rotateTrustedDevice } from '#identity/trusted-devices.ts'
import type { User } from '#identity/users.ts'
import { bearerOf } from '#kernel/http/presented-token.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken, uuidv7 } from '#kernel/random.ts'
import { PENDING_COOKIE } from '../door/cookies.ts'
import type { SignInContext } from '../door/sign-in-context.ts'
import type { Way } from '../door/way.ts'
import { fail } from '../errors.ts'
import { findFactor } from './store.ts'

/** A second factor that a sign-in can be completed with, besides a backup code. */
export type SecondFactorMethod = 'totp' | 'otp'

/** A sign-in that waits for its second factor. There is no session yet. */
export type PendingSecondFactor = {
  /** Valid for the endpoints of the second factor only. */
  readonly pendingToken: string
  readonly methods: readonly SecondFactorMethod[]
}

/** So that it is not mistaken for a session token. */
const PREFIX = '2fa_'
/** Milliseconds. */
export const PENDING_LIFETIME = 600_000
const DAY = 86_400_000
/** Of a trusted device, from its last sign-in; milliseconds. */
export const TRUST_LIFETIME = 30 * DAY

/** Begins the second step of a sign-in, in the transaction that has checked the first one. */
export async function beginSecondFactor(
  kernel: Kernel,
  { id: userId, email: address }: User,
  { way, shown, remember }: SignInContext & { readonly way: Way; readonly shown: readonly Shown[] },
): Promise<PendingSecondFactor> {
  const methods = await methodsFor(kernel, userId, way, shown)
  const token = await issueTicket(kernel, 'second-factor', {
    userId,
    address,
    sessionId: null,
    lifetime: PENDING_LIFETIME,
    payload: { methods, remember, shown },
  })
  return { pendingToken: `${PREFIX}${token}`, methods }
}

/** After a sign-in by mail, users who have no other method and no passkey have to sign in with the password, beside which the code counts. */
async function methodsFor(
  kernel: Kernel,
  userId: string,
  way: Way,
  shown: readonly Shown[],
): Promise<readonly SecondFactorMethod[]> {
  const factor = await findFactor(kernel.db, userId, true)
  if (factor === undefined) return []
  const isTaken = takesMailedCodes(await getMailbox(kernel.db, userId, shown))
  if (factor.method === 'totp') return isTaken ? ['totp', 'otp'] : ['totp']
  if (!isTaken) return []
  if (way === 'mail') throw fail('PASSWORD_SIGN_IN_REQUIRED')
  return ['otp']
}

/** The ticket of the pending sign-in that a request names, in the body, as Bearer or by its cookie. Undefined: it names none. */
export function presentedPending(request: FastifyRequest, inBody: string | undefined): string | undefined {
  const named = [inBody, bearerOf(request)].find((token) => token?.startsWith(PREFIX))
  return (named ?? PENDING_COOKIE.of(request))?.replace(PREFIX, '')
}

/** The new token of the browser's trusted device; undefined when the browser is none of this user's. */
export async function renewTrustedDevice(
  kernel: Kernel,
  userId: string,
  { trustedDevice }: SignInContext,
): Promise<string | undefined> {
  if (trustedDevice === undefined) return undefined
  const now = kernel.now()
  const renewed = { token: randomToken(kernel.random), expiresAt: trustedUntil(now), now }
  return (await rotateTrustedDevice(kernel.db, userId, trustedDevice, renewed)) ? renewed.token : undefined
}

/** Such a device shows nothing where codes by mail are the factor and it may have become one by the mailbox alone. */
export async function shownByTrust(
  { db }: Kernel,
  userId: string,
  shown: readonly Shown[],
): Promise<readonly Shown[]> {
  const isByMail = (await findFactor(db, userId, true))?.method === 'otp'
  return isByMail && hasMailCounted(await getMailbox(db, userId, shown)) ? [] : ['trusted device']
}

/** Trusts the browser from now on; returns its token. */
export async function trustDevice(kernel: Kernel, userId: string): Promise<string> {
  const createdAt = kernel.now()
  const token = randomToken(kernel.random)
  await insertTrustedDevice(kernel.db, {
    id: uuidv7(createdAt, kernel.random),
    userId,
    createdAt,
    tokenHash: tokenHash(token),
    expiresAt: trustedUntil(createdAt),
  })
  return token
}

const trustedUntil = (now: Date): Date => new Date(now.getTime() + TRUST_LIFETIME)
