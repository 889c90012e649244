import { type Insertable, sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { MemberTable } from '#kernel/db/tables.ts'
import type { Member } from './store.ts'

/** Throws a unique violation (`member_key`). */
export async function insertMember(db: Db, member: Insertable<MemberTable>): Promise<Member> {
  return db.insertInto('member').values(member).returningAll().executeTakeFirstOrThrow()
}

/** The member's user, as other members see it. */
type MemberUser = {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly emailVerified: boolean
  readonly image: string | null
}
export type MemberWithUser = Member & { readonly user: MemberUser }

export type MemberPage = {
  readonly limit: number
  readonly offset?: number
  readonly direction?: 'asc' | 'desc'
  /** Only members after the one with this id, in the order of the list. */
  readonly after?: string | undefined
  readonly userId?: string | undefined
}

/** Members in the order in which they joined. */
export async function listMembers(
  db: Db,
  organizationId: string,
  { limit, offset = 0, direction = 'asc', after, userId }: MemberPage,
): Promise<MemberWithUser[]> {
  const rows = await db
    .selectFrom('member as m')
    .innerJoin('user as u', 'u.id', 'm.userId')
    .where('m.organizationId', '=', organizationId)
    .$if(userId !== undefined, (all) => all.where('m.userId', '=', userId ?? ''))
    .$if(after !== undefined, (all) =>
      all.where(
        sql<boolean>`(m.created_at, m.id) ${direction === 'asc' ? sql`>` : sql`<`}
          ((select created_at from service.member where id = ${after}), ${after}::uuid)`,
      ),
    )
    .selectAll('m')
    .select(['u.name', 'u.email', 'u.emailVerified', 'u.image'])
    .orderBy('m.createdAt', direction)
    .orderBy('m.id', direction)
    .limit(limit)
    .offset(offset)
    .execute()
  return rows.map(({ name, email, emailVerified, image, ...member }) => ({
    ...member,
    user: { id: member.userId, name, email, emailVerified, image },
  }))
}

export type MembershipSummary = {
  readonly id: string
  readonly name: string
  readonly slug: string
  readonly role: string
  readonly joinedAt: Date
}

/** The organizations of a user with the user's role, in the order in which the user joined. */
export const listMembershipsOf = (
  db: Db,
  userId: string,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<MembershipSummary[]> =>
  db
    .selectFrom('member as m')
    .innerJoin('organization as o', 'o.id', 'm.organizationId')
    .where('m.userId', '=', userId)
    .select(['o.id', 'o.name', 'o.slug', 'm.role', 'm.createdAt as joinedAt'])
    .orderBy('m.createdAt')
    .orderBy('m.id')
    .limit(limit)
    .offset(offset)
    .execute()

/** A member of the organization, by the id of the member or the email of the user. */
export async function findMember(
  db: Db,
  organizationId: string,
  by: { readonly id: string } | { readonly email: string } | { readonly userId: string },
): Promise<MemberWithUser | undefined> {
  const members = db
    .selectFrom('member as m')
    .innerJoin('user as u', 'u.id', 'm.userId')
    .where('m.organizationId', '=', organizationId)
    .selectAll('m')
    .select(['u.name', 'u.email', 'u.emailVerified', 'u.image'])
  const one =
    'id' in by
      ? members.where('m.id', '=', by.id)
      : 'email' in by
        ? members.where('u.email', '=', by.email)
        : members.where('m.userId', '=', by.userId)
  const found = await one.executeTakeFirst()
  if (found === undefined) return undefined
  const { name, email, emailVerified, image, ...member } = found
  return { ...member, user: { id: member.userId, name, email, emailVerified, image } }
}

/** Whether another member is an owner. */
export async function hasOtherOwner(db: Db, { organizationId, userId }: Member): Promise<boolean> {
  const { rows } = await sql`select from service.member where organization_id = ${organizationId}
    and user_id != ${userId} and 'owner' = any (string_to_array(role, ',')) limit 1`.execute(db)
  return rows.length > 0
}

export async function updateMemberRole(db: Db, id: string, role: string): Promise<void> {
  await db.updateTable('member').set({ role }).where('id', '=', id).execute()
}

/** The organization is no longer active in the user's sessions: the foreign key of `session` sees to it. */
export async function deleteMember(db: Db, id: string): Promise<void> {
  await db.deleteFrom('member').where('id', '=', id).execute()
}
