import { type Insertable, sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import { deleteExpired } from '#kernel/db/delete-expired.ts'
import type { InvitationTable } from '#kernel/db/tables.ts'
import type { Invitation } from './store.ts'

/** An invitation as its recipient sees it. */
export type InvitationView = Invitation & {
  readonly organizationName: string
  readonly organizationSlug: string
  /** Null: the inviter has not proven the address. */
  readonly inviterEmail: string | null
}

const VIEW = sql`i.*, o.name as organization_name, o.slug as organization_slug,
  case when u.email_proven_at is not null then u.email end as inviter_email`

/** A pending invitation that has not expired. */
export async function findInvitation(db: Db, id: string, now: Date): Promise<InvitationView | undefined> {
  const { rows } = await sql<InvitationView>`select ${VIEW} from service.invitation i
    join service.organization o on o.id = i.organization_id join service."user" u on u.id = i.inviter_id
    where i.id = ${id} and i.status = 'pending' and i.expires_at > ${now}`.execute(db)
  return rows[0]
}

/** Pending invitations to an address, newest first. */
export async function listInvitationsTo(
  db: Db,
  email: string,
  now: Date,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<InvitationView[]> {
  const { rows } = await sql<InvitationView>`select ${VIEW} from service.invitation i
    join service.organization o on o.id = i.organization_id join service."user" u on u.id = i.inviter_id
    where i.email = ${email} and i.status = 'pending' and i.expires_at > ${now}
    order by i.created_at desc, i.id desc limit ${limit} offset ${offset}`.execute(db)
  return rows
}

/** Invitations of an organization in any state, newest first. */
export const listInvitations = (
  db: Db,
  organizationId: string,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<Invitation[]> =>
  db
    .selectFrom('invitation')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .offset(offset)
    .execute()

/** The pending invitation of an address, also when it has expired. */
export const findPending = (db: Db, organizationId: string, email: string): Promise<Invitation | undefined> =>
  db
    .selectFrom('invitation')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('email', '=', email)
    .where('status', '=', 'pending')
    .executeTakeFirst()

/** Whether the organization has at least `max` pending invitations that have not expired. */
export async function hasInvitations(
  db: Db,
  organizationId: string,
  now: Date,
  max: number,
): Promise<boolean> {
  const found = await db
    .selectFrom('invitation')
    .select('id')
    .where('organizationId', '=', organizationId)
    .where('status', '=', 'pending')
    .where('expiresAt', '>', now)
    .limit(1)
    .offset(max - 1)
    .executeTakeFirst()
  return found !== undefined
}

export const insertInvitation = (db: Db, invitation: Insertable<InvitationTable>): Promise<Invitation> =>
  db.insertInto('invitation').values(invitation).returningAll().executeTakeFirstOrThrow()

/** Extends a pending invitation in the name of another inviter. */
export const renewInvitation = (
  db: Db,
  id: string,
  change: Pick<Invitation, 'inviterId' | 'addedBy' | 'role' | 'expiresAt'>,
): Promise<Invitation> =>
  db.updateTable('invitation').set(change).where('id', '=', id).returningAll().executeTakeFirstOrThrow()

/** Of the mail that goes out now; those of earlier mails prove nothing any more. */
export async function updateInvitationSecret(db: Db, id: string, secretHash: Buffer): Promise<void> {
  await db.updateTable('invitation').set({ secretHash }).where('id', '=', id).execute()
}

/** Cancels the pending invitations from a user, but for those that this session has sent. Returns the canceled ones. */
export const cancelInvitationsFrom = (db: Db, userId: string, exceptOf?: string): Promise<Invitation[]> =>
  db
    .updateTable('invitation')
    .set({ status: 'canceled' })
    .where('inviterId', '=', userId)
    .where('status', '=', 'pending')
    .$if(exceptOf !== undefined, (query) => query.where('addedBy', 'is distinct from', exceptOf ?? ''))
    .returningAll()
    .execute()

type Ended = 'accepted' | 'rejected' | 'canceled'

/** Ends a pending invitation: one of any number of concurrent requests does. Undefined for the others, and after its end. */
export const endInvitation = (
  db: Db,
  { id, email }: { readonly id: string; readonly email?: string },
  status: Ended,
  now: Date,
): Promise<Invitation | undefined> =>
  db
    .updateTable('invitation')
    .set({ status })
    .where('id', '=', id)
    .$if(email !== undefined, (query) => query.where('email', '=', email ?? ''))
    .where('status', '=', 'pending')
    .where('expiresAt', '>', now)
    .returningAll()
    .executeTakeFirst()

export async function deleteInvitation(db: Db, id: string): Promise<void> {
  await db.deleteFrom('invitation').where('id', '=', id).execute()
}

export async function deleteInvitationsTo(db: Db, email: string): Promise<void> {
  await db.deleteFrom('invitation').where('email', '=', email).execute()
}

/** Milliseconds for which an organization still lists an invitation after its end. */
const LISTED = 30 * 86_400_000

/** Those that expired 30 days ago. One that is renewed meanwhile stays. */
export const deleteOldInvitations = (db: Db, now: Date, batch: number): Promise<number> =>
  deleteExpired(db, {
    table: 'service.invitation',
    key: 'id',
    before: new Date(now.getTime() - LISTED),
    batch,
  })
