import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import { isTokenShaped, tokenHash } from './tokens.ts'

/** A browser of the user that needs no second factor, while its token is valid. The id stays when the token is replaced. */
type NewTrustedDevice = {
  readonly id: string
  readonly userId: string
  readonly tokenHash: Buffer
  readonly expiresAt: Date
  readonly createdAt: Date
}

export async function insertTrustedDevice(db: Db, device: NewTrustedDevice): Promise<void> {
  await db.insertInto('trustedDevice').values(device).execute()
}

/** Replaces the token of a valid device and extends it. False when there is none: of several concurrent requests one succeeds. */
export async function rotateTrustedDevice(
  db: Db,
  userId: string,
  token: string,
  renewed: { readonly token: string; readonly expiresAt: Date; readonly now: Date },
): Promise<boolean> {
  if (!isTokenShaped(token)) return false
  const { numUpdatedRows } = await db
    .updateTable('trustedDevice')
    .set({ tokenHash: tokenHash(renewed.token), expiresAt: renewed.expiresAt })
    .where('tokenHash', '=', tokenHash(token))
    .where('userId', '=', userId)
    .where('expiresAt', '>', renewed.now)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Those that still count. */
export async function countTrustedDevices(db: Db, userId: string, now: Date): Promise<number> {
  const { count } = await db
    .selectFrom('trustedDevice')
    .select((of) => of.fn.countAll<string>().as('count'))
    .where('userId', '=', userId)
    .where('expiresAt', '>', now)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Ends the trust in one browser. */
/** Whether the user had it. */
export async function deleteTrustedDevice(db: Db, userId: string, token: string): Promise<boolean> {
  if (!isTokenShaped(token)) return false
  const { numDeletedRows } = await db
    .deleteFrom('trustedDevice')
    .where('userId', '=', userId)
    .where('tokenHash', '=', tokenHash(token))
    .executeTakeFirst()
  return numDeletedRows > 0n
}

export async function deleteTrustedDevices(db: Db, userId: string): Promise<void> {
  await db.deleteFrom('trustedDevice').where('userId', '=', userId).execute()
}

/** Deletes at most `batch` expired devices; returns their number. One that is extended meanwhile has a lock, and stays. */
export async function deleteExpiredTrustedDevices(db: Db, now: Date, batch: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from service.trusted_device where id = any (array(
      select id from service.trusted_device where expires_at <= ${now} limit ${batch} for update skip locked))`.execute(
    db,
  )
  return Number(numAffectedRows ?? 0n)
}
