import type { Db } from '#kernel/db/connect.ts'
import { deleteExpired } from '#kernel/db/delete-expired.ts'
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

/** One that is extended meanwhile stays. */
export const deleteExpiredTrustedDevices = (db: Db, before: Date, batch: number): Promise<number> =>
  deleteExpired(db, { table: 'service.trusted_device', key: 'id', before, batch })
