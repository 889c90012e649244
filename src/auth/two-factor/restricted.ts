import type { LiveSession } from '#identity/live-sessions.ts'
import { hadFactor, lacksSecondFactor } from '#identity/second-factor.ts'
import { getSession, type Session } from '#identity/sessions.ts'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { expectShown } from '../door/demands.ts'
import { fail } from '../errors.ts'

/**
 * A session that lacks the required second factor is restricted. It adds a first factor, so that the user is not shut out, and none
 * beside one that is there: else whoever has the password would add a factor of their own.
 */
export async function mayEnrol(kernel: Kernel, session: Session): Promise<boolean> {
  if (await hadFactor(kernel.db, session)) return false
  await expectShown(kernel, session, 'enrolRestricted')
  return true
}

/** An anonymous user whose first passkey has to count as the factor that their role will require: else it would shut them out. */
export const lacksFactorOnceKnown = (
  { config }: Kernel,
  { isAnonymous, id, role }: User,
  { session }: Pick<LiveSession, 'session'>,
): boolean =>
  isAnonymous && lacksSecondFactor(config, { user: { id, role }, session, impersonator: undefined })

/**
 * Whether the own session of a user, whose row is locked, lacks the required second factor by now: a role that requires one may have come since
 * the request was admitted, and the session may have lost what it had shown.
 */
export async function isRestricted(
  { db, config }: Kernel,
  user: User,
  { id }: Pick<Session, 'id'>,
): Promise<boolean> {
  const lacksFactor = (session: Pick<Session, 'shown' | 'impersonatedBy'>) =>
    lacksSecondFactor(config, { user, session, impersonator: undefined })
  // Most roles require none, and cost no query.
  return lacksFactor({ shown: [], impersonatedBy: null }) && lacksFactor(await getSession(db, id))
}

/** In the transaction that adds a way in. Returns whether the caller's session is restricted. */
export async function expectMayEnrol(
  kernel: Kernel,
  user: User,
  { session: { id } }: Pick<LiveSession, 'session'>,
): Promise<boolean> {
  const session = await getSession(kernel.db, id)
  const isRestricted = lacksSecondFactor(kernel.config, { user, session, impersonator: undefined })
  if (isRestricted && !(await mayEnrol(kernel, session))) throw fail('TWO_FACTOR_REQUIRED')
  return isRestricted
}
