import { recordAct } from '#kernel/audit/record-act.ts'
import type { Db } from '#kernel/db/connect.ts'
import { atomically, emitAfterCommit, type Kernel } from '#kernel/kernel.ts'
import { lockProvenUser } from './proof.ts'
import { deleteUserSessions } from './sessions.ts'
import { deleteTickets } from './tickets.ts'

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
    const ban = { banned: true, banReason: reason, banExpires: expires }
    await updateBan(kernel.db, userId, ban, kernel.now())
    await deleteUserSessions(kernel.db, userId)
    await deleteTickets(kernel.db, user)
    await recordAct(kernel, 'user.banned', { targetId: userId })
    emitAfterCommit(kernel, 'auth_user_banned', { userId })
    return true
  })
  await kernel.coherence.settle()
  return isThere
}

/** False when there is no such user. */
export const unbanUser = (kernel: Kernel, userId: string): Promise<boolean> =>
  atomically(kernel, async (kernel) => {
    const lifted = { banned: false, banReason: null, banExpires: null }
    const isThere = await updateBan(kernel.db, userId, lifted, kernel.now())
    if (isThere) await recordAct(kernel, 'user.unbanned', { targetId: userId })
    return isThere
  })

async function updateBan(
  db: Db,
  userId: string,
  ban: { readonly banned: boolean; readonly banReason: string | null; readonly banExpires: Date | null },
  now: Date,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('user')
    .set({ ...ban, updatedAt: now })
    .where('id', '=', userId)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}
