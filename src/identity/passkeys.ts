import { type Selectable, sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { PasskeyTable } from '#kernel/db/tables.ts'

/** A credential of WebAuthn. */
export type Passkey = Omit<Selectable<PasskeyTable>, 'credentialId' | 'counter'> & {
  readonly credentialID: string
  /** The authenticator's signature counter; 0 if it has none. */
  readonly counter: number
}

const passkeyFrom = ({ credentialId, counter, ...passkey }: Selectable<PasskeyTable>): Passkey => ({
  ...passkey,
  credentialID: credentialId,
  // 32 bits, which the column's type is wider than.
  counter: Number(counter),
})

/** Oldest first. */
export async function listPasskeys(db: Db, userId: string): Promise<Passkey[]> {
  const rows = await db
    .selectFrom('passkey')
    .selectAll()
    .where('userId', '=', userId)
    .orderBy('createdAt')
    .orderBy('id')
    .execute()
  return rows.map(passkeyFrom)
}

export async function findPasskeyByCredential(db: Db, credentialId: string): Promise<Passkey | undefined> {
  const found = await db
    .selectFrom('passkey')
    .selectAll()
    .where('credentialId', '=', credentialId)
    .executeTakeFirst()
  return found && passkeyFrom(found)
}

/** Undefined if the credential is registered already, for this user or another. */
export async function insertPasskey(
  db: Db,
  { credentialID: credentialId, counter, ...passkey }: Passkey & { readonly addedBy: string },
): Promise<Passkey | undefined> {
  const inserted = await db
    .insertInto('passkey')
    .values({ ...passkey, credentialId, counter: String(counter) })
    .onConflict((on) => on.column('credentialId').doNothing())
    .returningAll()
    .executeTakeFirst()
  return inserted && passkeyFrom(inserted)
}

/** Undefined if the user has no passkey of this id. */
export async function updatePasskeyName(
  db: Db,
  { id, userId, name }: Pick<Passkey, 'id' | 'userId' | 'name'>,
): Promise<Passkey | undefined> {
  const updated = await db
    .updateTable('passkey')
    .set({ name })
    .where('id', '=', id)
    .where('userId', '=', userId)
    .returningAll()
    .executeTakeFirst()
  return updated && passkeyFrom(updated)
}

/**
 * Records that the authenticator has signed with this counter. False if a signature with the same or a higher one was recorded, so one of
 * several concurrent requests with the same counter gets true (WebAuthn 3 section 7.2, step 22). Authenticators without a counter always
 * send 0. `rpId`: the domain that the signature was made for.
 */
export async function advanceCounter(
  db: Db,
  { id, counter, backedUp, rpId }: Pick<Passkey, 'id' | 'counter' | 'backedUp' | 'rpId'>,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('passkey')
    .set({ counter: String(counter), backedUp, rpId })
    .where('id', '=', id)
    .where(sql<boolean>`(counter < ${counter}::bigint or (counter = 0 and ${counter}::bigint = 0))`)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** False if the user has no passkey of this id. */
export async function deletePasskey(
  db: Db,
  { id, userId }: Pick<Passkey, 'id' | 'userId'>,
): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('passkey')
    .where('id', '=', id)
    .where('userId', '=', userId)
    .executeTakeFirst()
  return numDeletedRows === 1n
}

/**
 * Deletes all passkeys of the user; returns their number. `exceptOf`: those that this session has added stay, and the one that has made an
 * anonymous user a known one, which has the user's id in place of a session's.
 */
export async function deletePasskeys(db: Db, userId: string, exceptOf?: string): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('passkey')
    .where('userId', '=', userId)
    .$if(exceptOf !== undefined, (others) =>
      others.where((of) =>
        of.or([of('addedBy', 'is', null), of('addedBy', 'not in', [exceptOf ?? '', userId])]),
      ),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}
