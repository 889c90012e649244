import type { Config } from '#kernel/config/config.ts'
import type { LiveSession } from './sessions.ts'

/**
 * The user's role requires a second factor and the session has none (auth.md 7). Judged at each request, so a new role or setting holds
 * at once. An enrolled factor satisfies it, since every later sign-in asks for it, and so does a passkey with user verification.
 */
export const lacksSecondFactor = (
  { auth }: Config,
  { user, session }: Pick<LiveSession, 'user' | 'session'>,
): boolean =>
  !user.twoFactorEnabled &&
  !session.userVerified &&
  user.role.split(',').some((role) => auth.two_factor.required_for.includes(role.trim()))
