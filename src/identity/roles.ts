import type { Kernel } from '#kernel/kernel.ts'

/** Every role that a user can have. */
export const ROLES = ['user', 'admin'] as const
export type Role = (typeof ROLES)[number]

export const isRole = (text: string): text is Role => ROLES.some((role) => role === text)

/** When this answers, no process believes the role of before. False when there is no such user. */
export async function setRole(kernel: Kernel, userId: string, role: Role): Promise<boolean> {
  const { numUpdatedRows } = await kernel.db
    .updateTable('user')
    .set({ role, updatedAt: kernel.now() })
    .where('id', '=', userId)
    .executeTakeFirst()
  await kernel.coherence.settle()
  return numUpdatedRows > 0n
}
