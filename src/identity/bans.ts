import { changedFields } from '#kernel/audit/changed-fields.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { deleteUserSessions } from './sessions.ts'
import { tell, tellChange, untold } from './tell.ts'
import { deleteTickets } from './tickets.ts'
import { isBanned, NO_BAN, type User } from './users.ts'

export type Ban = {
  readonly reason: string | null
  /** Null: until it is lifted. */
  readonly expires: Date | null
}

/** For a user whose row is locked. Ends every session and every link in the same transaction. */
export async function applyBan(kernel: Kernel, user: User, { reason, expires }: Ban): Promise<User> {
  const banned = await updateBan(kernel, user.id, { banned: true, banReason: reason, banExpires: expires })
  await deleteUserSessions(kernel.db, user.id)
  await deleteTickets(kernel.db, user)
  await tellChange(kernel, 'user.banned', changedFields(user, banned, NO_BAN), { targetId: user.id })
  return banned
}

/** For a user whose row is locked. */
export async function liftBan(kernel: Kernel, user: User): Promise<User> {
  if (!isBanned(user, kernel.now())) return clearExpiredBan(kernel, user)
  await tell(kernel, 'user.unbanned', { targetId: user.id })
  return updateBan(kernel, user.id, NO_BAN)
}

/** For a user whose row is locked and who is not banned. */
export async function clearExpiredBan(kernel: Kernel, user: User): Promise<User> {
  if (!user.banned) return user
  untold(kernel, 'the ban has ended by itself')
  return updateBan(kernel, user.id, NO_BAN)
}

const updateBan = (
  { db, now }: Kernel,
  userId: string,
  ban: Pick<User, 'banned' | 'banReason' | 'banExpires'>,
): Promise<User> =>
  db
    .updateTable('user')
    .set({ ...ban, updatedAt: now() })
    .where('id', '=', userId)
    .returningAll()
    .executeTakeFirstOrThrow()
