import { type RawBuilder, type Selectable, sql } from 'kysely'
import { type AuditRecord, insertRecords } from '#kernel/audit/record-act.ts'
import type { Config } from '#kernel/config/config.ts'
import type { Db } from '#kernel/db/connect.ts'
import { selectList } from '#kernel/db/pipelined-statements.ts'
import type { SessionTable } from '#kernel/db/tables.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { DeviceNote } from './known-devices.ts'
import { FACTOR_OF_ADMIN, type ProofColumns } from './shown.ts'
import { tokenHash } from './tokens.ts'

export type Session = Omit<Selectable<SessionTable>, 'tokenHash' | 'originSessionId'>

export const SESSION_COLUMNS = [
  'id', 'userId', 'expiresAt', 'createdAt', 'updatedAt', 'remembered', 'ipAddress', 'userAgent', 'activeOrganizationId',
  'shown', 'authTime', 'passwordShownAt', 'factorShownAt', 'userHad', 'amr',
  'impersonatedBy', 'parentSessionId',
] as const satisfies readonly (keyof Session)[] // biome-ignore format: one line reads better

/** A lowered `session.max_age` holds for older sessions too. */
export const withinMaxAge = (config: Config, session: Session): Session =>
  endingBy(session, endWithinMaxAge(config, session.createdAt, session.expiresAt))

export const endingBy = (session: Session, end: Date): Session =>
  end < session.expiresAt ? { ...session, expiresAt: end } : session

/** The asked end of a session, or that of `session.max_age` if it comes first. */
export function endWithinMaxAge({ session: { max_age } }: Config, createdAt: Date, asked: Date): Date {
  const last = createdAt.getTime() + max_age
  return max_age === 0 || asked.getTime() <= last ? asked : new Date(last)
}

type NewSession = Omit<
  Session,
  | 'updatedAt'
  | 'activeOrganizationId'
  | 'impersonatedBy'
  | 'parentSessionId'
  | 'userHad'
  | 'amr'
  | keyof ProofColumns
> & { readonly tokenHash: Buffer }

/** Begins an impersonated session, and ends the admin's oldest ones beyond `max`. It ends none of the user's own. */
export async function insertImpersonation(
  db: Db,
  session: NewSession & { readonly impersonatedBy: string; readonly parentSessionId: string },
  max: number,
): Promise<Session> {
  return db
    .with('surplus', (with_) =>
      with_.deleteFrom('session').where('id', 'in', (of) =>
        of
          .selectFrom('session')
          .select('id')
          .where('impersonatedBy', '=', session.impersonatedBy)
          .orderBy('createdAt', 'desc')
          .orderBy('id', 'desc')
          // A statement does not see its own insert, so the new one is not counted.
          .offset(max - 1)
          .limit(1_000),
      ),
    )
    .insertInto('session')
    .values({ ...session, updatedAt: session.createdAt, shown: shownOfAdmin(session.parentSessionId) })
    .returning(SESSION_COLUMNS)
    .executeTakeFirstOrThrow()
}

/** The admin's row is locked, so that the admin's session shows nothing else meanwhile. */
const shownOfAdmin = (sessionId: string): RawBuilder<string[]> => sql`array(
  select ${FACTOR_OF_ADMIN}::text from service.session p where p.id = ${sessionId} and service.has_shown_factor(p.shown))`

/**
 * Starts a session, ends the user's oldest ones beyond `max`, notes the device, and writes the row of the trail. It keeps what the user has at this moment. One
 * statement, since each of them costs a twentieth of what the hash leaves of a sign-in.
 */
export async function insertSession(
  db: Db,
  session: NewSession & ProofColumns,
  {
    max,
    device,
    organization,
    record,
  }: {
    readonly max: number
    readonly device: DeviceNote
    /** The row of the audit trail. */
    readonly record: AuditRecord
    /** The one that is active in it. */
    readonly organization: RawBuilder<string | null>
  },
): Promise<{ readonly session: Session; readonly deviceHash: Buffer }> {
  const { id, tokenHash, userId, expiresAt, createdAt, remembered, ipAddress, userAgent } = session
  const { shown, authTime, passwordShownAt, factorShownAt } = session
  // As text: through the query builder it made a quarter of the garbage of a sign-in.
  const { rows } = await sql<Session & { readonly deviceHash: Buffer; readonly isFull: boolean }>`
    with surplus_devices as (${device.deleteSurplus}), device as (${device.insert}), recorded as (${insertRecords([record])})
    insert into service.session (
      id, token_hash, user_id, expires_at, created_at, updated_at, remembered, ip_address, user_agent,
      shown, auth_time, password_shown_at, factor_shown_at, active_organization_id, user_had)
    values (
      ${id}, ${tokenHash}, ${userId}, ${expiresAt}, ${createdAt}, ${createdAt}, ${remembered}, ${ipAddress}, ${userAgent},
      ${[...shown]}, ${authTime}, ${passwordShownAt}, ${factorShownAt}, ${organization}, service.methods_of(${userId}))
    returning ${RETURNED}, (select device_hash from device) as device_hash,
      -- A statement does not see its own insert, so the new one is not counted.
      exists (select from service.session where user_id = ${userId} and impersonated_by is null offset ${max - 1}) as is_full`.execute(
    db,
  )
  const [{ isFull, deviceHash, ...started }] = rows as [(typeof rows)[number]]
  // By a statement of its own: with it every sign-in would wait for the caches (followed-tables.ts).
  if (isFull)
    await deleteOldestSessions(db, started.userId, { kept: sql`(select ${started.id}::uuid as id)`, max })
  return { session: started, deviceHash }
}

const RETURNED = sql.raw(selectList('session', SESSION_COLUMNS))

/** An admin who impersonates the user ends none of the user's own sessions. */
export const ownSessions = (db: Db, userId: string) =>
  db.selectFrom('session').select('id').where('userId', '=', userId).where('impersonatedBy', 'is', null)

/** Ends the user's oldest sessions, so that at most `max` are left. `kept`: a table of the ids of those that stay. */
export const deleteOldestSessions = async (
  db: Db,
  userId: string,
  { kept, max }: { readonly kept: RawBuilder<unknown>; readonly max: number },
): Promise<void> =>
  void (await db
    .deleteFrom('session')
    .where(
      'id',
      'in',
      ownSessions(db, userId)
        .where(sql<boolean>`id not in (select id from ${kept} as kept)`)
        .orderBy('createdAt', 'desc')
        .orderBy('id', 'desc')
        .offset(sql<number>`greatest(${max} - (select count(*) from ${kept} as kept), 0)`)
        .limit(1_000),
    )
    .execute())

/**
 * Extends a session, unless another request just has. It is not notified (live-sessions.ts). A derived session is extended up to the end of
 * its origin at most.
 */
export async function extendSession(db: Db, session: Session, expiresAt: Date, now: Date): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('session')
    .set({ expiresAt: sql`least(${expiresAt}::timestamptz, ${END_OF_ORIGIN})`, updatedAt: now })
    .where('id', '=', session.id)
    .where('updatedAt', '=', session.updatedAt)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Null for a session that is not derived (derived-sessions.ts). */
const END_OF_ORIGIN = sql`(select o.expires_at from service.session o where o.id = session.origin_session_id)`

/** Replaces the token of a session. Its age stays. */
export async function updateSessionToken(db: Db, id: string, hash: Buffer, now: Date): Promise<void> {
  await db.updateTable('session').set({ tokenHash: hash, updatedAt: now }).where('id', '=', id).execute()
}

/** Keeps what a session has shown, for one that a proof has locked (proof.ts). */
export async function updateShown(db: Db, id: string, { shown, ...times }: ProofColumns): Promise<void> {
  await db
    .updateTable('session')
    .set({ ...times, shown: [...shown] })
    .where('id', '=', id)
    .execute()
}

/** A session that a proof has locked (proof.ts). */
export const getSession = (db: Db, id: string): Promise<Session> =>
  db.selectFrom('session').select(SESSION_COLUMNS).where('id', '=', id).executeTakeFirstOrThrow()

/** Valid sessions, newest first. */
export async function listSessions({ db, config, now }: Kernel, userId: string): Promise<Session[]> {
  const sessions = await db
    .selectFrom('session')
    .select(SESSION_COLUMNS)
    .where('userId', '=', userId)
    .where('expiresAt', '>', now())
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .execute()
  return sessions.map((session) => withinMaxAge(config, session)).filter(({ expiresAt }) => expiresAt > now())
}

export async function deleteSession(db: Db, id: string): Promise<void> {
  await db.deleteFrom('session').where('id', '=', id).execute()
}

export type NamedSession = { readonly id: string } | { readonly token: string }

/** The id of the user whose session it is. */
export async function findSessionOwner(db: Db, by: NamedSession): Promise<string | undefined> {
  const all = db.selectFrom('session').select('userId')
  const one = 'id' in by ? all.where('id', '=', by.id) : all.where('tokenHash', '=', tokenHash(by.token))
  return (await one.executeTakeFirst())?.userId
}

/** Ends one session of this user, by its id or its token; returns the number of sessions ended. */
export async function deleteSessionOf(db: Db, userId: string, by: NamedSession): Promise<number> {
  const ofUser = db.deleteFrom('session').where('userId', '=', userId)
  const one =
    'id' in by ? ofUser.where('id', '=', by.id) : ofUser.where('tokenHash', '=', tokenHash(by.token))
  const { numDeletedRows } = await one.executeTakeFirst()
  return Number(numDeletedRows)
}

/** Ends every session of the user except `keep`, which ends with no other one from now on; returns the number of sessions ended. */
export async function deleteUserSessions(db: Db, userId: string, keep?: string): Promise<number> {
  const { numDeletedRows } = await (keep === undefined
    ? db.deleteFrom('session').where('userId', '=', userId)
    : db
        .with('kept', (with_) =>
          with_
            .updateTable('session')
            .set({ originSessionId: null })
            .where('id', '=', keep)
            .where('originSessionId', 'is not', null),
        )
        .deleteFrom('session')
        .where('userId', '=', userId)
        .where('id', '!=', keep)
  ).executeTakeFirst()
  return Number(numDeletedRows)
}

/**
 * Deletes at most `batch` expired sessions; returns their number. It is not notified (0129_fewer_notifications.sql), so that one which is extended
 * meanwhile has to stay: caches hold it. Otherwise as `deleteExpired`.
 */
export async function deleteExpiredSessions(db: Db, now: Date, batch: number): Promise<number> {
  const { rows } = await sql<{ readonly count: number }>`
    with pruned as (
      delete from service.session where id = any (array(
        select id from service.session where expires_at <= ${now} limit ${batch} for update skip locked)) returning id)
    select count(*)::int as count, set_config('gatehouse.prunes_sessions', 'on', true) from pruned`.execute(
    db,
  )
  return rows[0]?.count ?? 0
}
