import { recordAct } from '#kernel/audit/record-act.ts'
import { atomically, emitAfterCommit, type Kernel } from '#kernel/kernel.ts'
import { lockProvenUser } from './proof.ts'
import { deleteUserSessions } from './sessions.ts'
import { deleteTickets } from './tickets.ts'
import type { User } from './users.ts'

export type Ban = {
  readonly reason: string | null
  /** Null: until it is lifted. */
  readonly expires: Date | null
}

/**
 * Bans the user, and ends every session and every link in the same transaction. When this resolves, no process accepts one. False
 * when there is no such user.
 */
export async function banUser(kernel: Kernel, userId: string, { reason, expires }: Ban): Promise<boolean> {
  const isThere = await atomically(kernel, async (kernel) => {
    const user = await lockProvenUser(kernel, { userId })
    if (user === undefined) return false
    await applyBan(kernel, user, { reason, expires })
    return true
  })
  await kernel.coherence.settle()
  return isThere
}

/** For a user whose row is locked. */
export async function applyBan(kernel: Kernel, user: User, { reason, expires }: Ban): Promise<User> {
  const banned = await updateBan(kernel, user.id, { banned: true, banReason: reason, banExpires: expires })
  await deleteUserSessions(kernel.db, user.id)
  await deleteTickets(kernel.db, user)
  await recordAct(kernel, 'user.banned', { targetId: user.id })
  emitAfterCommit(kernel, 'auth_user_banned', { userId: user.id })
  return banned
}

/** False when there is no such user. */
export const unbanUser = (kernel: Kernel, userId: string): Promise<boolean> =>
  atomically(kernel, async (kernel) => {
    const user = await lockProvenUser(kernel, { userId })
    if (user !== undefined) await liftBan(kernel, user)
    return user !== undefined
  })

/** For a user whose row is locked. */
export async function liftBan(kernel: Kernel, { id }: User): Promise<User> {
  const user = await updateBan(kernel, id, { banned: false, banReason: null, banExpires: null })
  await recordAct(kernel, 'user.unbanned', { targetId: id })
  return user
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
