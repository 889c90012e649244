import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { endImpersonations } from './impersonation.ts'
import { coversPermissions, hasPermissions, isAdmin } from './permissions.ts'
import { tell } from './tell.ts'
import { type User, withoutExpiredBan } from './users.ts'

/** For a user whose row is locked. Ends the impersonations by and of the user that the new role does not allow. */
export async function changeRole(kernel: Kernel, user: User, role: string): Promise<User> {
  if (role === user.role) return withoutExpiredBan(user, kernel.now())
  if (isAdmin(kernel, user) || isAdmin(kernel, { ...user, role })) await lockAdmins(kernel.db)
  const now = kernel.now()
  const loses = !coversPermissions(kernel, { id: user.id, role }, user)
  const changed = await kernel.db
    .updateTable('user')
    .set({ role, updatedAt: now, ...(loses && { permissionLostAt: now }) })
    .where('id', '=', user.id)
    .returningAll()
    .executeTakeFirstOrThrow()
  await endImpersonations(kernel, user.id)
  await tell(kernel, 'user.role_changed', { targetId: user.id, details: { from: user.role, to: role } })
  return withoutExpiredBan(changed, now)
}

/** Whether the user has an admin permission, or has lost one in the last days: a demotion must not come before what is refused on admins. */
export const countsAsAdmin = (kernel: Kernel, user: User): boolean =>
  hasPermissions(kernel, user) ||
  (user.permissionLostAt !== null && kernel.now().getTime() - user.permissionLostAt.getTime() < REMEMBERED)

const REMEMBERED = 7 * 86_400_000

/** For a user whose row is locked. The answer holds until the transaction ends, so that two last admins cannot both go. */
export async function isLastAdmin(kernel: Kernel, user: User): Promise<boolean> {
  if (!isAdmin(kernel, user)) return false
  const { db, now } = kernel
  await lockAdmins(db)
  // A banned admin could not lift a ban.
  const other = await adminsOf(kernel)
    .where((is) => is.or([is('banned', '=', false), is('banExpires', '<=', now())]))
    .where('id', '!=', user.id)
    .limit(1)
    .executeTakeFirst()
  return other === undefined
}

/** The ids of all admins, banned ones too. */
export const adminsOf = ({ db, config }: Pick<Kernel, 'db' | 'config'>) =>
  db
    .selectFrom('user')
    .select('id')
    .where((is) =>
      is.or([
        sql<boolean>`'admin' = any (string_to_array(role, ','))`,
        is('id', '=', sql<string>`any (${config.auth.admin.user_ids}::uuid[])`),
      ]),
    )
    .where('isAnonymous', '=', false)

/**
 * One lock for every verb that makes or removes an admin, and for the link that makes the first one: the next one sees the result of this one.
 * Taken after the rows of users that exist, and before one is added, who waits for another with the same address.
 */
export const lockAdmins = (db: Db) =>
  sql`select pg_advisory_xact_lock(hashtextextended('gatehouse admins', 0))`.execute(db)
