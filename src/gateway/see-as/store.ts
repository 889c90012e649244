import type { Db } from '#kernel/db/connect.ts'

/** The roles of a user in an organization, joined by commas. Undefined for no member. */
export async function findRoleIn(
  db: Db,
  organizationId: string,
  userId: string,
): Promise<string | undefined> {
  const member = await db
    .selectFrom('member')
    .select('role')
    .where('organizationId', '=', organizationId)
    .where('userId', '=', userId)
    .executeTakeFirst()
  return member?.role
}
