import { act } from '#identity/act.ts'
import { insertDerivedSession, lineOf, type Origin } from '#identity/derived-sessions.ts'
import { deleteOldestSessions, getSession } from '#identity/sessions.ts'
import { tell } from '#identity/tell.ts'
import { tokenHash } from '#identity/tokens.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken, uuidv7 } from '#kernel/random.ts'
import { expectConsentToSignIn } from '../hooks/sign-in.ts'
import { initialOrganization } from '../organization/initial.ts'
import type { RenewedSession } from './admit.ts'
import type { SignInContext } from './sign-in-context.ts'
import type { Way } from './way.ts'

/** A session from which another one is derived, and what proves that it may be. */
type Derivation = {
  readonly way: Way
  readonly userId: string
  readonly origin: Origin
  /** The failure when the origin does not live any more. */
  readonly refuse: () => Error
}

/**
 * The door of sessions that are derived from another one, beside `admit`. They are what their origin is: it has passed the policies and the
 * second factor, and whatever it has shown the new one has shown at the same time. The browser becomes neither a known nor a trusted device.
 */
export function deriveSession(
  kernel: Kernel,
  { way, userId, origin, refuse }: Derivation,
  { ipAddress, userAgent }: Pick<SignInContext, 'ipAddress' | 'userAgent'>,
): Promise<RenewedSession> {
  return act(kernel, { userId, session: { id: origin.id }, refuse }, async (kernel, { user }) => {
    const { db, config, random } = kernel
    const now = kernel.now()
    const token = randomToken(random)
    const { shown } = await getSession(db, origin.id)
    const session = await insertDerivedSession(db, origin, {
      ...{ id: uuidv7(now, random), tokenHash: tokenHash(token), updatedAt: now },
      ...{ ipAddress, userAgent: userAgent?.slice(0, 512) ?? null },
      organization: initialOrganization(config, user.id, shown),
    })
    if (session === undefined) throw refuse()
    await deleteOldestSessions(db, user.id, { kept: lineOf(session.id), max: config.session.max_per_user })
    expectConsentToSignIn(kernel, user, { way, amr: session.amr })
    await tell(kernel, 'user.signed_in', { targetId: user.id, details: { sessionId: session.id, way } })
    const maxAge = session.remembered ? session.expiresAt.getTime() - now.getTime() : undefined
    return { token, session, user, maxAge, trustedDevice: undefined }
  })
}
