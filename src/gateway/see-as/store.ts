import type { Db } from '#kernel/db/connect.ts'

type Place = { readonly role: string; readonly requireTwoFactor: boolean }

/** The roles of a user in an organization, joined by commas, and what it requires of its members. Undefined for no member. */
export function findPlaceIn(db: Db, organizationId: string, userId: string): Promise<Place | undefined> {
  return db
    .selectFrom('member as m')
    .innerJoin('organization as o', 'o.id', 'm.organizationId')
    .select(['m.role', 'o.requireTwoFactor'])
    .where('m.organizationId', '=', organizationId)
    .where('m.userId', '=', userId)
    .executeTakeFirst()
}
