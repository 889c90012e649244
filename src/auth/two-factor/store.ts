import { type Selectable, sql } from 'kysely'
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

/** The factor that waits for its first right code. */
export async function findBegunFactor({ db, now }: Kernel, userId: string): Promise<Factor | undefined> {
  const found = await findFactor(db, userId, false)
  return found !== undefined && now().getTime() < found.createdAt.getTime() + WAIT ? found : undefined
}

export type NewFactor = Pick<Factor, 'id' | 'userId' | 'method' | 'secret' | 'addedBy' | 'createdAt'>

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

/** Counts a wrong code. The `max`th in a row locks the factor and begins a new count. */
export async function countFailure(
  db: Db,
  id: string,
  { max, lockedUntil }: { readonly max: number; readonly lockedUntil: Date },
): Promise<void> {
  await sql`
    update service.two_factor set
      failures = case when failures + 1 >= ${max} then 0 else failures + 1 end,
      locked_until = case when failures + 1 >= ${max} then ${lockedUntil}::timestamptz else locked_until end
    where id = ${id}`.execute(db)
}

export async function clearFailures(db: Db, id: string): Promise<void> {
  await db.updateTable('twoFactor').set({ failures: 0, lockedUntil: null }).where('id', '=', id).execute()
}

/** Until then codes by mail are no second factor beside another method. */
export async function updateMailCountedUntil(db: Db, userId: string, until: Date): Promise<void> {
  await db
    .updateTable('twoFactor')
    .set({ mailCountedUntil: until })
    .where('userId', '=', userId)
    .where('inForce', '=', true)
    .execute()
}

export async function deleteBackupCodes(db: Db, twoFactorId: string): Promise<void> {
  await db.deleteFrom('backupCode').where('twoFactorId', '=', twoFactorId).execute()
}

/** Secrets of authenticator apps, as they are sealed. */
export const listAppSecrets = (
  db: Db,
  after: string,
  max: number,
): Promise<{ readonly id: string; readonly secret: string }[]> =>
  db
    .selectFrom('twoFactor')
    .select(['id', 'secret'])
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
