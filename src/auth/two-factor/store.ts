import { type Selectable, sql } from 'kysely'
import type { Session } from '#identity/sessions.ts'
import type { Db } from '#kernel/db/connect.ts'
import type { TwoFactorTable } from '#kernel/db/tables.ts'
import type { Kernel } from '#kernel/kernel.ts'

export type Factor = Omit<Selectable<TwoFactorTable>, 'method'> & { readonly method: 'totp' | 'otp' }

/** The user's factor that is in force, or the one that was begun last (`findBegunFactor`: if it can still be put in force). */
export async function findFactor(db: Db, userId: string, inForce: boolean): Promise<Factor | undefined> {
  const found = await db
    .selectFrom('twoFactor')
    .selectAll()
    .where('userId', '=', userId)
    .where('inForce', '=', inForce)
    .executeTakeFirst()
  return found as Factor | undefined // the column's constraint allows these two methods
}

/** Milliseconds in which the first right code has to come. Later, a factor that was begun could be the trap of a session long ended. */
const WAIT = 3_600_000

/**
 * The factor that waits for its first right code in this session. Another session neither reads it nor puts it in force: one of the two may be
 * a stranger's, who would know the secret or the backup codes.
 */
export async function findBegunFactor(
  { db, now }: Kernel,
  userId: string,
  { id }: Pick<Session, 'id'>,
): Promise<Factor | undefined> {
  const found = await findFactor(db, userId, false)
  if (found === undefined || found.addedBy !== id) return undefined
  return now().getTime() < found.createdAt.getTime() + WAIT ? found : undefined
}

type NewFactor = Pick<Factor, 'id' | 'userId' | 'method' | 'secret' | 'addedBy' | 'createdAt'>

/** Adds a factor that waits for its first right code, with its backup codes. */
export async function insertFactor(db: Db, factor: NewFactor, codes: readonly Buffer[]): Promise<void> {
  await db
    .with('added', (with_) => with_.insertInto('twoFactor').values(factor).returning('id'))
    .insertInto('backupCode')
    .columns(['twoFactorId', 'codeHash'])
    .expression((of) =>
      of.selectFrom('added').select(['id', sql<Buffer>`unnest(${codes}::bytea[])`.as('codeHash')]),
    )
    .execute()
}

export async function updateFactorInForce(db: Db, id: string): Promise<void> {
  await db.updateTable('twoFactor').set({ inForce: true }).where('id', '=', id).execute()
}

/** Notes the time step of a right code; false when a code of it or of a later one was accepted before. */
export async function useStep(db: Db, id: string, step: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('twoFactor')
    .set({ lastStep: String(step) })
    .where('id', '=', id)
    .where((of) => of.or([of('lastStep', 'is', null), of('lastStep', '<', String(step))]))
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Uses up a backup code; false when it is not one of the factor's. */
export async function deleteBackupCode(
  db: Db,
  twoFactorId: string,
  hashes: readonly Buffer[],
): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('backupCode')
    .where('twoFactorId', '=', twoFactorId)
    .where('codeHash', 'in', hashes)
    .executeTakeFirst()
  return numDeletedRows > 0n
}

export async function replaceBackupCodes(
  db: Db,
  twoFactorId: string,
  codes: readonly Buffer[],
): Promise<void> {
  await deleteBackupCodes(db, twoFactorId)
  await db
    .insertInto('backupCode')
    .values(codes.map((codeHash) => ({ twoFactorId, codeHash })))
    .execute()
}

type NewFailure = {
  readonly counter: string
  readonly now: Date
  /** This one locks until then, and the count begins anew. */
  readonly max: number
  readonly lockedUntil: Date
  /** A count that began before `since`, or after `until`, is over. Absent: it has no window. */
  readonly window?: { readonly since: Date; readonly until: Date }
}

export async function countFailure(
  db: Db,
  id: string,
  { counter, now, max, lockedUntil, window }: NewFailure,
): Promise<void> {
  const isOver =
    window === undefined
      ? sql`false`
      : sql`(known.began_at <= ${window.since} or known.began_at > ${window.until})`
  await sql`
    insert into service.wrong_code as known (two_factor_id, counter, failures, began_at)
      values (${id}, ${counter}, 1, ${now})
    on conflict (two_factor_id, counter) do update set
      failures = case when ${isOver} then 1 when known.failures + 1 >= ${max} then 0 else known.failures + 1 end,
      began_at = case when ${isOver} or known.failures = 0 then excluded.began_at else known.began_at end,
      locked_until = case when not ${isOver} and known.failures + 1 >= ${max} then ${lockedUntil}::timestamptz else known.locked_until end
  `.execute(db)
}

/** Of the locks that end by then. */
export async function findLockEnd(
  db: Db,
  id: string,
  { counters, latest }: { readonly counters: readonly string[]; readonly latest: Date },
): Promise<Date | undefined> {
  const found = await db
    .selectFrom('wrongCode')
    .select((of) => of.fn.max('lockedUntil').as('end'))
    .where('twoFactorId', '=', id)
    .where('counter', 'in', counters)
    .where('lockedUntil', '<=', latest)
    .executeTakeFirst()
  return found?.end ?? undefined
}

export async function deleteFailures(db: Db, id: string, counters: readonly string[]): Promise<void> {
  await db.deleteFrom('wrongCode').where('twoFactorId', '=', id).where('counter', 'in', counters).execute()
}

/** Milliseconds. */
const KEPT = 86_400_000

/** Deletes at most `batch` counts that began a day ago and lock nothing any more; returns their number. Those that count meanwhile have a lock, and stay. */
export async function deleteOldFailures(db: Db, now: Date, batch: number): Promise<number> {
  const before = new Date(now.getTime() - KEPT)
  const { numAffectedRows } = await sql`
    with old as materialized (
      select two_factor_id, counter from service.wrong_code
      where began_at <= ${before} and (locked_until is null or locked_until <= ${before}) limit ${batch}
      for update skip locked)
    delete from service.wrong_code c using old where c.two_factor_id = old.two_factor_id and c.counter = old.counter`.execute(
    db,
  )
  return Number(numAffectedRows ?? 0n)
}

export async function deleteBackupCodes(db: Db, twoFactorId: string): Promise<void> {
  await db.deleteFrom('backupCode').where('twoFactorId', '=', twoFactorId).execute()
}

/** Secrets of authenticator apps, as they are sealed. */
export const listAppSecrets = (
  db: Db,
  after: string,
  max: number,
): Promise<{ readonly id: string; readonly userId: string; readonly secret: string }[]> =>
  db
    .selectFrom('twoFactor')
    .select(['id', 'userId', 'secret'])
    .where('id', '>', after)
    .where('secret', 'is not', null)
    .orderBy('id')
    .limit(max)
    .$narrowType<{ secret: string }>()
    .execute()

/** Without effect when the secret has changed meanwhile. */
export async function updateAppSecret(
  db: Db,
  id: string,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<void> {
  await db
    .updateTable('twoFactor')
    .set({ secret: to })
    .where('id', '=', id)
    .where('secret', '=', from)
    .execute()
}

/** An authenticator app becomes codes by mail. */
export async function updateToMail(db: Db, id: string): Promise<void> {
  await db.updateTable('twoFactor').set({ method: 'otp', secret: null }).where('id', '=', id).execute()
}
