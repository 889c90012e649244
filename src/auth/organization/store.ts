import { type RawBuilder, type Selectable, sql } from 'kysely'
import { FACTOR_OF_ADMIN } from '#identity/shown.ts'
import { untold } from '#identity/tell.ts'
import type { Db } from '#kernel/db/connect.ts'
import type { InvitationTable, MemberTable, OrganizationTable } from '#kernel/db/tables.ts'
import { type CountMode, countRows, type Total } from '#kernel/db/total.ts'
import type { Kernel, TransactionNotes } from '#kernel/kernel.ts'

/** `metadata` is JSON text. */
export type Organization = Omit<Selectable<OrganizationTable>, 'metadata'> & { readonly metadata: string }
export type Member = Omit<Selectable<MemberTable>, 'lastActiveAt'>
export type Invitation = Selectable<InvitationTable>

/** An organization, and a user's place in it. */
export type Membership = { readonly organization: Organization; readonly member: Member }

type LockKernel = Pick<Kernel, 'db' | 'notes'>

/** After it, no more users are locked in the transaction (decision 41). */
function noteOrganizationLock(notes: TransactionNotes | undefined): void {
  if (notes !== undefined) notes.isPastUsers = true
}

/** How an organization is named. */
export type OrganizationKey = { readonly id: string } | { readonly slug: string }

/** How an organization's row is locked. Only `share` allows another one of its kind. */
export type OrganizationLock = 'update' | 'no key update' | 'share'

const LOCKS = {
  update: sql`for update of o for share of m`,
  'no key update': sql`for no key update of o for share of m`,
  share: sql`for share of o for share of m`,
} as const satisfies Record<OrganizationLock, unknown>

const ORGANIZATION = sql`o.id, o.name, o.slug, o.logo, o.metadata::text as metadata, o.require_two_factor, o.member_count, o.created_at, o.updated_at`
const MEMBER = sql`m.id as member_id, m.role, m.created_at as joined_at`

type MembershipRow = Organization & {
  readonly memberId: string
  readonly role: string
  readonly joinedAt: Date
}

/**
 * The organization, and the user's place in it. Undefined when there is no such organization or the user is no member: one indexed
 * statement for both, so that neither the answer nor its time tells which. With a lock, the newest versions of both rows (proof.ts).
 */
export async function findMembership(
  { db, notes }: LockKernel,
  userId: string,
  key: OrganizationKey,
  lock?: OrganizationLock,
): Promise<Membership | undefined> {
  const named = 'id' in key ? sql`o.id = ${key.id}` : sql`o.slug = ${key.slug}`
  const { rows } = await sql<MembershipRow>`select ${ORGANIZATION}, ${MEMBER} from service.organization o
    join service.member m on m.organization_id = o.id and m.user_id = ${userId}
    where ${named} ${lock === undefined ? sql`` : LOCKS[lock]}`.execute(db)
  if (lock !== undefined) noteOrganizationLock(notes)
  const [row] = rows
  if (row === undefined) return undefined
  const { memberId, role, joinedAt, ...organization } = row
  const member = { id: memberId, organizationId: organization.id, userId, role, createdAt: joinedAt }
  return { organization, member }
}

/** The organization, locked for a user who becomes a member, or for an administrator. */
export async function lockOrganization(
  { db, notes }: LockKernel,
  id: string,
  lock: 'update' | 'no key update' = 'no key update',
): Promise<Organization | undefined> {
  noteOrganizationLock(notes)
  const { rows } = await sql<Organization>`
    select ${ORGANIZATION} from service.organization o where o.id = ${id} for ${sql.raw(lock)}`.execute(db)
  return rows[0]
}

/** Organizations of the user, oldest membership first. */
export async function listOrganizations(
  db: Db,
  userId: string,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<Organization[]> {
  const { rows } = await sql<Organization>`select ${ORGANIZATION} from service.member m
    join service.organization o on o.id = m.organization_id
    where m.user_id = ${userId} order by m.created_at, m.id limit ${limit} offset ${offset}`.execute(db)
  return rows
}

export async function findOrganization(db: Db, key: OrganizationKey): Promise<Organization | undefined> {
  const named = 'id' in key ? sql`o.id = ${key.id}` : sql`o.slug = ${key.slug}`
  const { rows } =
    await sql<Organization>`select ${ORGANIZATION} from service.organization o where ${named}`.execute(db)
  return rows[0]
}

/** The newest organizations whose name or slug contains the text. */
export async function searchOrganizations(
  db: Db,
  {
    search,
    limit,
    offset = 0,
  }: { readonly search: string | undefined; readonly limit: number; readonly offset?: number },
): Promise<Organization[]> {
  const { rows } = await sql<Organization>`select ${ORGANIZATION} from service.organization o
    where ${contains(search)} order by o.id desc limit ${limit} offset ${offset}`.execute(db)
  return rows
}

export const countOrganizations = (
  db: Db,
  search: string | undefined,
  mode: CountMode | undefined,
): Promise<Total> => countRows(db, sql`(select from service.organization o where ${contains(search)})`, mode)

function contains(search = ''): RawBuilder<boolean> {
  if (search === '') return sql`true`
  const pattern = `%${search.replace(/[\\%_]/g, '\\$&')}%`
  return sql`(o.name ilike ${pattern} or o.slug ilike ${pattern})`
}

/** Whether the user is in at least `max` organizations. */
export async function isInOrganizations(db: Db, userId: string, max: number): Promise<boolean> {
  const found = await db
    .selectFrom('member')
    .select('id')
    .where('userId', '=', userId)
    .limit(1)
    .offset(max - 1)
    .executeTakeFirst()
  return found !== undefined
}

export async function isSlugTaken(db: Db, slug: string): Promise<boolean> {
  const found = await db.selectFrom('organization').select('id').where('slug', '=', slug).executeTakeFirst()
  return found !== undefined
}

type NewOrganization = Pick<Organization, 'id' | 'name' | 'slug' | 'logo' | 'metadata' | 'createdAt'>

/** Throws a unique violation (`organization_slug_key`). */
export async function insertOrganization(db: Db, organization: NewOrganization): Promise<Organization> {
  const { id, name, slug, logo, metadata, createdAt } = organization
  const { rows } = await sql<Organization>`
    insert into service.organization as o (id, name, slug, logo, metadata, created_at, updated_at)
    values (${id}, ${name}, ${slug}, ${logo}, ${metadata}::jsonb, ${createdAt}, ${createdAt}) returning ${ORGANIZATION}`.execute(
    db,
  )
  // An insert returns its row.
  return rows[0] as Organization
}

export type OrganizationChange = Partial<
  Pick<Organization, 'name' | 'slug' | 'logo' | 'metadata' | 'requireTwoFactor'>
>

/** Throws a unique violation (`organization_slug_key`). */
export async function updateOrganization(
  db: Db,
  id: string,
  change: OrganizationChange,
  now: Date,
): Promise<Organization> {
  return db
    .updateTable('organization as o')
    .set({ ...change, updatedAt: now })
    .where('o.id', '=', id)
    .returning(['id', 'name', 'slug', 'logo', 'requireTwoFactor', 'memberCount', 'createdAt', 'updatedAt'])
    .returning(sql<string>`o.metadata::text`.as('metadata'))
    .executeTakeFirstOrThrow()
}

/** Deletes the organization with members and invitations; it is no longer active in any session. */
export const deleteOrganizations = async (db: Db, ids: readonly string[]): Promise<void> =>
  void (await db.deleteFrom('organization').where('id', 'in', ids).execute())

/** Makes an organization active in a session whose user is a member, and the user's last one; null: none. */
export async function updateActiveOrganization(
  kernel: Pick<Kernel, 'db' | 'now' | 'notes'>,
  sessionId: string,
  organizationId: string | null,
): Promise<void> {
  untold(kernel, 'what is active is a matter of the session')
  await sql`with changed as (
      update service.session set active_organization_id = ${organizationId} where id = ${sessionId}
        returning user_id, active_organization_id, impersonated_by)
    update service.member m set last_active_at = ${kernel.now()} from changed c
      where m.user_id = c.user_id and m.organization_id = c.active_organization_id and c.impersonated_by is null`.execute(
    kernel.db,
  )
}

/** No organization was active in a session of the user. */
export async function updateNeverActive(db: Db, userId: string): Promise<void> {
  await db
    .updateTable('member')
    .set({ lastActiveAt: null })
    .where('userId', '=', userId)
    .where('lastActiveAt', 'is not', null)
    .execute()
}

/**
 * SQL for the organization of a session that begins. Both rows stay as they are until it has begun; one row is judged in its newest
 * version, since it is locked.
 */
export function chosenOrganization(
  userId: string,
  which: 'last' | 'only',
  hasFactor: boolean,
): RawBuilder<string | null> {
  const chosen =
    which === 'last'
      ? sql`m.last_active_at is not null order by m.last_active_at desc limit 1`
      : sql`not exists (select from service.member other where other.user_id = m.user_id and other.id <> m.id)`
  return sql`(
    select case when ${hasFactor} or not o.require_two_factor then m.organization_id end from service.member m
      join service.organization o on o.id = m.organization_id
      where m.user_id = ${userId} and ${chosen} for share of o for key share of m)`
}

/**
 * The organizations are no longer active in any session. The foreign key would do that too, with a statement for each member: 100,000
 * took longer than the statement timeout.
 */
export const deactivateEverywhere = async (db: Db, ids: readonly string[]): Promise<void> =>
  void (await db
    .updateTable('session')
    .set({ activeOrganizationId: null })
    .where('activeOrganizationId', 'in', ids)
    .execute())

/** The organization, which requires a second factor, is no longer active in sessions that have none. */
export const deactivateWithoutFactor = async (db: Db, id: string): Promise<void> =>
  void (await sql`update service.session s set active_organization_id = null
    from service.session own
    where s.active_organization_id = ${id} and own.id = coalesce(s.parent_session_id, s.id)
      and not ${HAS_SHOWN_FACTOR}`.execute(db))

/** Of a session `s`, for which `own` is that of the admin if it is impersonated. As `hasSecondFactor` (identity/second-factor.ts). */
const HAS_SHOWN_FACTOR = sql`(service.has_shown_factor(own.shown) and (s.parent_session_id is null or ${FACTOR_OF_ADMIN} = any (s.shown)))`

/** Whether a session has shown a second factor. For an impersonated one that of the admin counts. */
export async function hasFactor(db: Db, sessionId: string): Promise<boolean> {
  const { rows } = await sql<{ found: boolean }>`select ${HAS_SHOWN_FACTOR} as found
    from service.session s join service.session own on own.id = coalesce(s.parent_session_id, s.id)
    where s.id = ${sessionId}`.execute(db)
  return rows[0]?.found === true
}

/** Ids of the users who have a session in which the organization is active. */
export async function listActiveUsers(db: Db, organizationId: string): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('session')
    .select('userId')
    .distinct()
    .where('activeOrganizationId', '=', organizationId)
    .execute()
  return rows.map(({ userId }) => userId)
}

/** Locks every organization that has the user as a member, or an invitation from or to the user, by id. */
export async function lockOrganizationsOf(
  { db, notes }: LockKernel,
  { id, email }: { readonly id: string; readonly email: string },
): Promise<void> {
  noteOrganizationLock(notes)
  await sql`select from service.organization where id in (
      select organization_id from service.member where user_id = ${id}
      union select organization_id from service.invitation where inviter_id = ${id}
      union select organization_id from service.invitation where email = ${email}
    ) order by id for no key update`.execute(db)
}

/** The effect on an organization of deleting a member's account. */
type Departure = {
  readonly id: string
  /** It has no other member. */
  readonly isAlone: boolean
  readonly isOnlyOwner: boolean
}

/** The organizations of a user, which are locked. */
export async function listDepartures(db: Db, userId: string): Promise<Departure[]> {
  const { rows } = await sql<Departure>`select o.id, o.member_count = 1 as is_alone,
      'owner' = any (string_to_array(m.role, ',')) and not exists (select from service.member other
        where other.organization_id = o.id and other.user_id != m.user_id and 'owner' = any (string_to_array(other.role, ',')))
        as is_only_owner
    from service.member m join service.organization o on o.id = m.organization_id where m.user_id = ${userId}`.execute(
    db,
  )
  return rows
}
