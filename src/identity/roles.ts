import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import { atomically, type Kernel } from '#kernel/kernel.ts'
import { lockProvenUser } from './proof.ts'
import type { User } from './users.ts'

/** The roles of users. */
export const ROLES = ['user', 'admin'] as const
export type Role = (typeof ROLES)[number]

export const isRole = (text: string): text is Role => ROLES.some((role) => role === text)

/** When this resolves, no process uses the former role any more. False when there is no such user. */
export async function setRole(kernel: Kernel, userId: string, role: Role): Promise<boolean> {
  const isThere = await atomically(kernel, async (kernel) => {
    const user = await lockProvenUser(kernel, { userId })
    if (user === undefined) return false
    if (user.role === 'admin') await lockAdmins(kernel.db)
    await kernel.db
      .updateTable('user')
      .set({ role, updatedAt: kernel.now() })
      .where('id', '=', userId)
      .execute()
    return true
  })
  await kernel.coherence.settle()
  return isThere
}

/** For a user whose row is locked. The answer holds until the transaction ends, so that two last admins cannot both go. */
export async function isLastAdmin(db: Db, { id, role }: User): Promise<boolean> {
  if (role !== 'admin') return false
  await lockAdmins(db)
  const other = await db
    .selectFrom('user')
    .select('id')
    .where('role', '=', 'admin')
    .where('id', '!=', id)
    .limit(1)
    .executeTakeFirst()
  return other === undefined
}

/** One lock for every verb that removes an admin, taken after the users' rows: the next one sees the result of this one. */
const lockAdmins = (db: Db) =>
  sql`select pg_advisory_xact_lock(hashtextextended('gatehouse admins', 0))`.execute(db)
