import { act } from '#identity/act.ts'
import { clearExpiredBan } from '#identity/bans.ts'
import { noteDevice } from '#identity/known-devices.ts'
import type { Proof } from '#identity/proof.ts'
import { endWithinMaxAge, insertSession, type Session } from '#identity/sessions.ts'
import { afterShowing, NOTHING_SHOWN, type Shown, type ShownWay, wordsOf } from '#identity/shown.ts'
import { tellWithin } from '#identity/tell.ts'
import { tokenHash } from '#identity/tokens.ts'
import { isBanned, type User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken, uuidv7 } from '#kernel/random.ts'
import { fail } from '../errors.ts'
import { expectConsentToSignIn } from '../hooks/sign-in.ts'
import { requestMail } from '../mailing/request.ts'
import { initialOrganization } from '../organization/initial.ts'
import {
  beginSecondFactor,
  type PendingSecondFactor,
  renewTrustedDevice,
  shownByTrust,
} from '../two-factor/pending.ts'
import { browserMark } from './cookies.ts'
import type { SignInContext } from './sign-in-context.ts'
import { isTwoFactors, type Way } from './way.ts'

/** The outcome of a way in: a session, or a sign-in that waits for its second factor. `finishSignIn` answers both. */
export type Admission = StartedSession | PendingSecondFactor

export type StartedSession = {
  readonly token: string
  readonly session: Session
  /** As of this transaction. */
  readonly user: User
  /** Of the cookie, in milliseconds; undefined: until the browser closes. */
  readonly maxAge: number | undefined
  /** The new token of the browser's trusted device. */
  readonly trustedDevice: string | undefined
  /** Of the known device. */
  readonly knownDevice: string
}

/** A session that has a new token. */
export type RenewedSession = Omit<StartedSession, 'knownDevice'>

/** A way in, and what it has proven. */
export type Entrance = {
  readonly way: Way
  /** Shown by the session from its beginning. */
  readonly shown: readonly (Shown | ShownWay)[]
  /** The address that a provider has proven, if any. Whoever has that mailbox may have the provider's account. */
  readonly address?: string | undefined
  readonly proof: Proof
  /** The failure when the proof does not hold any more. */
  readonly refuse: () => Error
}

const DAY = 86_400_000

/**
 * The one door: every way of signing in ends here and gets its session here. Only this function decides about bans, the verification
 * policy and the second factor. The proof is checked again in the transaction.
 */
export async function admit(
  kernel: Kernel,
  { way, shown: given, address, proof, refuse }: Entrance,
  context: SignInContext,
): Promise<Admission> {
  const { require_email_verification } = kernel.config.auth.email_password
  const outcome = await act(kernel, { ...proof, refuse }, async (kernel, { user }) => {
    if (isBanned(user, kernel.now())) throw fail('BANNED_USER')
    const isUnverified = require_email_verification && !user.emailVerified && !user.isAnonymous
    if (isUnverified) return { unverified: user }
    const words = given.flatMap((each) => wordsAtSignIn(kernel, each))
    const shown = address === user.email ? ([...words, 'mail'] as const) : words
    return startOrAsk(kernel, await clearExpiredBan(kernel, user), { ...context, way, shown })
  })
  if (!('unverified' in outcome)) return outcome
  await requestFirstLink(kernel, outcome.unverified, context)
  throw fail('EMAIL_NOT_VERIFIED')
}

/** Each way has been there before the session, whatever the clocks say. */
const wordsAtSignIn = ({ now }: Kernel, given: Shown | ShownWay): readonly Shown[] =>
  typeof given === 'string' ? [given] : wordsOf(given, { begun: given.addedAt, now: now() })

type Arrival = SignInContext & Pick<Entrance, 'way'> & { readonly shown: readonly Shown[] }

/** A trusted device is renewed at each sign-in, also when the way in counts as two factors. */
async function startOrAsk(kernel: Kernel, user: User, arrival: Arrival): Promise<Admission> {
  if (!user.twoFactorEnabled) return startSession(kernel, user, arrival)
  const trustedDevice = await renewTrustedDevice(kernel, user.id, arrival)
  if (trustedDevice === undefined)
    return isTwoFactors(arrival.way)
      ? startSession(kernel, user, arrival)
      : beginSecondFactor(kernel, user, arrival)
  const shown = [...arrival.shown, ...(await shownByTrust(kernel, user.id, arrival.shown))]
  return startSession(kernel, user, { ...arrival, shown }, trustedDevice)
}

async function startSession(
  kernel: Kernel,
  user: User,
  { way, shown, remember, ipAddress, userAgent, knownDevice: presented }: Arrival,
  trustedDevice?: string,
): Promise<StartedSession> {
  const now = kernel.now()
  const proofs = afterShowing(NOTHING_SHOWN, shown, now)
  const { expires_in, max_per_user } = kernel.config.session
  const token = randomToken(kernel.random)
  const lifetime = remember ? expires_in : Math.min(DAY, expires_in)
  const expiresAt = endWithinMaxAge(kernel.config, now, new Date(now.getTime() + lifetime))
  const device = noteDevice(kernel, user, presented)
  const id = uuidv7(now, kernel.random)
  const { record, emitEvent } = tellWithin(kernel, 'user.signed_in', {
    targetId: user.id,
    details: { sessionId: id, way },
  })
  const { session, deviceHash } = await insertSession(
    kernel.db,
    {
      id,
      tokenHash: tokenHash(token),
      userId: user.id,
      expiresAt,
      createdAt: now,
      remembered: remember,
      ...proofs,
      ipAddress,
      userAgent: userAgent?.slice(0, 512) ?? null,
    },
    {
      max: max_per_user,
      device,
      record,
      organization: initialOrganization(kernel.config, user.id, proofs.shown),
    },
  )
  expectConsentToSignIn(kernel, user, { way, amr: session.amr })
  await emitEvent()
  const maxAge = remember ? expiresAt.getTime() - now.getTime() : undefined
  return { token, session, user, maxAge, trustedDevice, knownDevice: device.cookieOf(deviceHash) }
}

/**
 * Asks the queue for a verification mail, and marks the browser: the user has just set or shown the password, and may keep it. The
 * queue checks that the address is this user's, since a hidden sign-up makes the same request with the id of no user.
 */
export async function requestFirstLink(
  kernel: Kernel,
  { id: userId, email }: Pick<User, 'id' | 'email'>,
  { callbackURL, markBrowser }: SignInContext,
  { isSignUp = false, session }: { readonly isSignUp?: boolean; readonly session?: string | undefined } = {},
): Promise<void> {
  const mark = randomToken(kernel.random)
  if (!isSignUp || kernel.config.auth.email.send_on_sign_up) markBrowser(mark)
  const request = { email, userId, browser: browserMark(mark), session, callbackURL, isSignUp }
  await requestMail(kernel, 'first-link', request)
}
