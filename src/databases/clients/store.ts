import type { Insertable, Selectable, Updateable } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { DatabaseClientTable } from '#kernel/db/tables.ts'

/** A client that was registered over HTTP. */
export type ClientRow = Selectable<DatabaseClientTable>

/** Of those that are not deleted, the only one of its name. */
export const CLIENT_NAME_KEY = 'database_client_name_key'

export function insertClient(db: Db, row: Insertable<DatabaseClientTable>): Promise<ClientRow> {
  return db.insertInto('databaseClient').values(row).returningAll().executeTakeFirstOrThrow()
}

export function listClients(db: Db): Promise<ClientRow[]> {
  return db
    .selectFrom('databaseClient')
    .selectAll()
    .where('deletedAt', 'is', null)
    .orderBy('clientName')
    .execute()
}

export function updateClient(
  db: Db,
  name: string,
  change: Updateable<DatabaseClientTable>,
): Promise<ClientRow | undefined> {
  return db
    .updateTable('databaseClient')
    .set(change)
    .where('clientName', '=', name)
    .where('deletedAt', 'is', null)
    .returningAll()
    .executeTakeFirst()
}

/** The row stays, as a record that the client was there; what opened its database goes. */
export async function deleteClient(db: Db, name: string, now: Date): Promise<boolean> {
  const row = await updateClient(db, name, {
    deletedAt: now,
    updatedAt: now,
    sealedUrl: null,
    urlEnvVar: null,
  })
  return row !== undefined
}

/** Unless it was changed meanwhile. */
export async function resealClient(db: Db, id: string, before: string, sealedUrl: string): Promise<void> {
  await db
    .updateTable('databaseClient')
    .set({ sealedUrl })
    .where('id', '=', id)
    .where('sealedUrl', '=', before)
    .execute()
}

/** The only statement that tells no other process. */
export async function markSeen(db: Db, id: string, now: Date): Promise<void> {
  await db.updateTable('databaseClient').set({ lastSeenAt: now }).where('id', '=', id).execute()
}
