import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import { atomically, type Kernel } from '#kernel/kernel.ts'
import { stateAgain } from './proof.ts'
import type { User } from './users.ts'

/** Every role that a user can have. */
export const ROLES = ['user', 'admin'] as const
export type Role = (typeof ROLES)[number]

export const isRole = (text: string): text is Role => ROLES.some((role) => role === text)

/** When this answers, no process believes the role of before. False when there is no such user. */
export async function setRole(kernel: Kernel, userId: string, role: Role): Promise<boolean> {
  const isThere = await atomically(kernel, async (kernel) => {
    const user = await stateAgain(kernel, { userId })
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

/** Of a user whose row is locked, and true until the transaction ends: two admins who go at once do not both go. */
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

/** One lock for everything that takes an admin away, after the users' rows: the next one sees what this one did. */
const lockAdmins = (db: Db) =>
  sql`select pg_advisory_xact_lock(hashtextextended('gatehouse admins', 0))`.execute(db)
