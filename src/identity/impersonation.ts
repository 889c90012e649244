import type { Clock } from '#kernel/clock.ts'
import type { Config } from '#kernel/config/config.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { coversPermissions, hasPermissions, isPermitted } from './permissions.ts'
import { isBanned, type User } from './users.ts'

/** The admin who has begun an impersonated session. */
export type Impersonator = Pick<User, 'id' | 'role' | 'banned' | 'banExpires'>

/**
 * Whether this admin may act as the user. Asked when an impersonation begins and at each of its requests, so that it ends as soon as
 * either of the two users changes.
 */
export function mayImpersonate(
  kernel: { readonly config: Config; readonly now: Clock },
  admin: Impersonator,
  user: Pick<User, 'id' | 'role'>,
): boolean {
  return (
    admin.id !== user.id &&
    !isBanned(admin, kernel.now()) &&
    isPermitted(kernel, admin, { user: ['impersonate'] }) &&
    coversPermissions(kernel, admin, user) &&
    (kernel.config.auth.admin.allow_impersonating_admins || !hasPermissions(kernel, user))
  )
}

/**
 * Ends the impersonations by the user and of the user that are not allowed any more. For a user whose row is locked, after a change of
 * its role.
 */
export async function endImpersonations(kernel: Kernel, userId: string): Promise<void> {
  const sessions = await kernel.db
    .selectFrom('session as s')
    .innerJoin('user as a', 'a.id', 's.impersonatedBy')
    .innerJoin('user as u', 'u.id', 's.userId')
    .where((of) =>
      of.or([
        of('s.impersonatedBy', '=', userId),
        of.and([of('s.userId', '=', userId), of('s.impersonatedBy', 'is not', null)]),
      ]),
    )
    .select(['s.id as sessionId', 'u.id as userId', 'u.role as userRole'])
    .select(['a.id', 'a.role', 'a.banned', 'a.banExpires'])
    .execute()
  const ended = sessions.filter(
    ({ userId: id, userRole: role, ...admin }) => !mayImpersonate(kernel, admin, { id, role }),
  )
  if (ended.length > 0)
    await kernel.db
      .deleteFrom('session')
      .where(
        'id',
        'in',
        ended.map(({ sessionId }) => sessionId),
      )
      .execute()
}
