import { type Selectable, sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { JwtKeyTable } from '#kernel/db/tables.ts'
import type { JwtAlgorithm } from './jws.ts'

/** standby: published, and signs nothing yet. previous: published, and signs no more. */
export type JwtKeyState = 'standby' | 'signing' | 'previous' | 'retired'

export type JwtKey = Selectable<JwtKeyTable> & {
  readonly algorithm: JwtAlgorithm
  readonly state: JwtKeyState
}

/** All keys, oldest first. */
export const listJwtKeys = (db: Db): Promise<JwtKey[]> =>
  // The constraints of the table allow only these words.
  db.selectFrom('jwtKey').selectAll().orderBy('createdAt').orderBy('id').execute() as Promise<JwtKey[]>

type NewJwtKey = Pick<JwtKey, 'id' | 'algorithm' | 'sealedKey' | 'createdAt' | 'signingAt'> & {
  readonly state: 'standby' | 'signing'
  readonly publicJwk: object
}

export async function insertJwtKey(db: Db, key: NewJwtKey): Promise<void> {
  await db
    .insertInto('jwtKey')
    .values({ ...key, publicJwk: JSON.stringify(key.publicJwk) })
    .execute()
}

export async function updateJwtKey(
  db: Db,
  id: string,
  changed: Partial<Pick<JwtKey, 'state' | 'sealedKey' | 'signingAt' | 'previousAt' | 'retiredAt'>>,
): Promise<void> {
  await db.updateTable('jwtKey').set(changed).where('id', '=', id).execute()
}

/** For a key that is still sealed as `from`. */
export async function resealJwtKey(
  db: Db,
  id: string,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<void> {
  await db
    .updateTable('jwtKey')
    .set({ sealedKey: to })
    .where('id', '=', id)
    .where('sealedKey', '=', from)
    .execute()
}

export async function deleteRetiredJwtKeys(db: Db, before: Date): Promise<void> {
  await db.deleteFrom('jwtKey').where('state', '=', 'retired').where('retiredAt', '<', before).execute()
}

/** Until the end of the transaction no other process changes the turn of keys. */
export async function lockJwtKeys(db: Db): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended('gatehouse jwt keys', 0))`.execute(db)
}

/** Every key of the database, whoever can open it; returns their number. */
export async function retireAllJwtKeys(db: Db): Promise<number> {
  const { rows } = await sql<{ retired: number }>`select service.retire_jwt_keys() as retired`.execute(db)
  return rows[0]?.retired ?? 0
}
