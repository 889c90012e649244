import { type Inheritance, startInheritedSession } from '#identity/inherited-sessions.ts'
import { hasPassedFactor } from '#identity/shown.ts'
import { tell } from '#identity/tell.ts'
import { isBanned, type User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { expectConsentToSignIn } from '../hooks/sign-in.ts'
import { initialOrganization } from '../organization/initial.ts'
import type { RenewedSession } from './admit.ts'
import type { SignInContext } from './sign-in-context.ts'
import type { Way } from './way.ts'

/** A session that has vouched for another one. */
type Vouched = {
  readonly way: Extract<Way, 'device'>
  readonly inheritance: Inheritance
  /** The failure when the user may not have a session, or not without showing more. */
  readonly refuse: () => Error
}

/**
 * The door of `admit` for a session that begins with what another one has shown. Call it in the transaction that redeems the other one's
 * word for it, with the user's row locked. Nothing can be asked for here, so whatever a sign-in would ask for refuses.
 */
export async function admitInheriting(
  kernel: Kernel,
  user: User,
  { way, inheritance, refuse }: Vouched,
  { ipAddress, userAgent }: Pick<SignInContext, 'ipAddress' | 'userAgent'>,
): Promise<RenewedSession> {
  const { config } = kernel
  const isUnverified = config.auth.email_password.require_email_verification && !user.emailVerified
  // The factor may be newer than the word.
  const lacksFactor = user.twoFactorEnabled && !hasPassedFactor(inheritance.shown)
  if (isBanned(user, kernel.now()) || isUnverified || lacksFactor) throw refuse()
  const organization = initialOrganization(config, user.id, inheritance.shown)
  const started = await startInheritedSession(kernel, {
    ...{ userId: user.id, inheritance, organization },
    ...{ ipAddress, userAgent },
  })
  const { session } = started
  expectConsentToSignIn(kernel, user, { way, amr: session.amr })
  await tell(kernel, 'user.signed_in', { targetId: user.id, details: { sessionId: session.id, way } })
  const maxAge = session.remembered ? session.expiresAt.getTime() - kernel.now().getTime() : undefined
  return { ...started, user, maxAge, trustedDevice: undefined }
}
