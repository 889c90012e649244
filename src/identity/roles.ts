import { sql } from 'kysely'
import { recordAct } from '#kernel/audit/record-act.ts'
import type { Db } from '#kernel/db/connect.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { endImpersonations } from './impersonation.ts'
import { isAdmin } from './permissions.ts'
import type { User } from './users.ts'

/** For a user whose row is locked. Ends the impersonations by and of the user that the new role does not allow. */
export async function changeRole(kernel: Kernel, user: User, role: string): Promise<User> {
  if (isAdmin(kernel, user)) await lockAdmins(kernel.db)
  const changed = await kernel.db
    .updateTable('user')
    .set({ role, updatedAt: kernel.now() })
    .where('id', '=', user.id)
    .returningAll()
    .executeTakeFirstOrThrow()
  await endImpersonations(kernel, user.id)
  await recordAct(kernel, 'user.role_changed', { targetId: user.id, details: { from: user.role, to: role } })
  return changed
}

/** For a user whose row is locked. The answer holds until the transaction ends, so that two last admins cannot both go. */
export async function isLastAdmin(kernel: Kernel, user: User): Promise<boolean> {
  if (!isAdmin(kernel, user)) return false
  const { db, config, now } = kernel
  await lockAdmins(db)
  // A banned admin could not lift a ban.
  const other = await db
    .selectFrom('user')
    .select('id')
    .where((is) =>
      is.or([
        sql<boolean>`'admin' = any (string_to_array(role, ','))`,
        is('id', '=', sql<string>`any (${config.auth.admin.user_ids}::uuid[])`),
      ]),
    )
    .where((is) => is.or([is('banned', '=', false), is('banExpires', '<=', now())]))
    .where('id', '!=', user.id)
    .limit(1)
    .executeTakeFirst()
  return other === undefined
}

/** One lock for every verb that removes an admin, taken after the users' rows: the next one sees the result of this one. */
const lockAdmins = (db: Db) =>
  sql`select pg_advisory_xact_lock(hashtextextended('gatehouse admins', 0))`.execute(db)
