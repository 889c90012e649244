import { sql } from 'kysely'
import type { Config } from '#kernel/config/config.ts'
import type { Db } from '#kernel/db/connect.ts'
import type { LiveSession } from './live-sessions.ts'
import { effectiveRole, splitRoles } from './permissions.ts'
import type { Session } from './sessions.ts'
import { hasShownFactor, isFactor } from './shown.ts'
import type { User } from './users.ts'

type FactorHolder = Pick<LiveSession, 'impersonator'> & {
  readonly session: Pick<Session, 'shown' | 'impersonatedBy'>
}

/**
 * The session has shown a second factor. That its user has one counts for nothing: another session may have added it. An impersonated
 * session is judged by what that of its admin had shown when it began, and still has.
 */
export const hasSecondFactor = ({ session, impersonator }: FactorHolder): boolean =>
  session.impersonatedBy === null ? hasShownFactor(session.shown) : impersonator?.hasSecondFactor === true

/**
 * A role requires a second factor and the session has none (auth.md 7): a role of the user, or of the admin who acts as the user. Judged
 * at each request, so a new role or setting holds at once.
 */
export const lacksSecondFactor = (
  config: Config,
  { user, session, impersonator }: FactorHolder & { readonly user: RoleHolder },
): boolean =>
  !hasSecondFactor({ session, impersonator }) &&
  [user, impersonator].some((one) => one !== undefined && requiresSecondFactor(config, one))

type RoleHolder = Pick<User, 'id' | 'role'> & Partial<Pick<User, 'isAnonymous'>>

/** An anonymous user has been given no role, and can have no factor. The requirement holds from the upgrade on. */
const requiresSecondFactor = (config: Config, user: RoleHolder): boolean =>
  user.isAnonymous !== true &&
  splitRoles(effectiveRole({ config }, user)).some((role) =>
    config.auth.two_factor.required_for.includes(role),
  )

/** The user of the session has a factor, a passkey too, or had one when the session began. */
export async function hadFactor(
  db: Db,
  { userId, userHad }: Pick<Session, 'userId' | 'userHad'>,
): Promise<boolean> {
  if (userHad.some(isFactor)) return true
  const { rows } = await sql<{ methods: string[] }>`select service.methods_of(${userId}) as methods`.execute(
    db,
  )
  return rows.some(({ methods }) => methods.some(isFactor))
}

export type FactorInForce = {
  readonly method: 'totp' | 'otp'
  readonly createdAt: Date
  /** Those that are left. */
  readonly backupCodes: number
}

/** Without its secret. */
export async function findFactorInForce(db: Db, userId: string): Promise<FactorInForce | undefined> {
  const { rows } = await sql<FactorInForce>`select f.method, f.created_at,
      (select count(*)::int from service.backup_code c where c.two_factor_id = f.id) as backup_codes
    from service.two_factor f where f.user_id = ${userId} and f.in_force`.execute(db)
  return rows[0]
}

/**
 * Deletes the factor in force, or the one that was begun, with its backup codes, unless the session `exceptOf` has added it; false when
 * there is none.
 */
export async function deleteFactor(
  db: Db,
  userId: string,
  inForce: boolean,
  exceptOf?: string,
): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('twoFactor')
    .where('userId', '=', userId)
    .where('inForce', '=', inForce)
    .$if(exceptOf !== undefined, (others) => others.where('addedBy', 'is distinct from', exceptOf ?? ''))
    .executeTakeFirst()
  return numDeletedRows > 0n
}
