import type { Config } from '#kernel/config/config.ts'
import type { Db } from '#kernel/db/connect.ts'
import { effectiveRole, splitRoles } from './permissions.ts'
import type { LiveSession, Session } from './sessions.ts'
import type { User } from './users.ts'

type Judged = Pick<LiveSession, 'impersonator'> & {
  readonly user: Pick<User, 'twoFactorEnabled'>
  readonly session: Pick<Session, 'userVerified' | 'impersonatedBy'>
}

/**
 * An enrolled factor satisfies, since every later sign-in asks for it, and so does a passkey with user verification. In an impersonated
 * session those of the admin count: the user's have not been asked for.
 */
export const hasSecondFactor = ({ user, session, impersonator }: Judged): boolean =>
  session.impersonatedBy === null
    ? user.twoFactorEnabled || session.userVerified
    : impersonator?.hasSecondFactor === true

/**
 * The user's role requires a second factor and the session has none (auth.md 7). Judged at each request, so a new role or setting holds
 * at once.
 */
export const lacksSecondFactor = (
  config: Config,
  { user, session, impersonator }: Pick<LiveSession, 'user' | 'session' | 'impersonator'>,
): boolean =>
  !hasSecondFactor({ user, session, impersonator }) &&
  // The admin's own session has passed this rule.
  session.impersonatedBy === null &&
  splitRoles(effectiveRole({ config }, user)).some((role) =>
    config.auth.two_factor.required_for.includes(role),
  )

/** Deletes the factor in force, or the one that was begun, with its backup codes; false when there is none. */
export async function deleteFactor(db: Db, userId: string, inForce: boolean): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('twoFactor')
    .where('userId', '=', userId)
    .where('inForce', '=', inForce)
    .executeTakeFirst()
  return numDeletedRows > 0n
}
