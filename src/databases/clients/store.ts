import type { Insertable, Selectable, Updateable } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { DatabaseClientTable } from '#kernel/db/tables.ts'

/** A client that was registered over HTTP. */
export type ClientRow = Selectable<DatabaseClientTable>

/** Names are unique among rows that are not deleted. */
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

/** False if there is no such client. Its deletion waits until the transaction ends. */
export async function holdClient(db: Db, name: string): Promise<boolean> {
  const row = await db
    .selectFrom('databaseClient')
    .select('id')
    .where('clientName', '=', name)
    .where('deletedAt', 'is', null)
    .forShare()
    .executeTakeFirst()
  return row !== undefined
}

/** Keeps the row as a record of the client and deletes the credentials. */
export async function deleteClient(db: Db, name: string, now: Date): Promise<boolean> {
  const row = await updateClient(db, name, {
    deletedAt: now,
    updatedAt: now,
    sealedUrl: null,
    urlEnvVar: null,
  })
  return row !== undefined
}

/** Has no effect when the URL was changed meanwhile. */
export async function resealClient(db: Db, id: string, before: string, sealedUrl: string): Promise<void> {
  await db
    .updateTable('databaseClient')
    .set({ sealedUrl })
    .where('id', '=', id)
    .where('sealedUrl', '=', before)
    .execute()
}

/** The only statement that does not notify other processes. */
export async function markSeen(db: Db, id: string, now: Date): Promise<void> {
  await db.updateTable('databaseClient').set({ lastSeenAt: now }).where('id', '=', id).execute()
}

/** Clients that a restore writes at the moment. */
export async function listRestoring(db: Db): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('backupJob')
    .select('clientName')
    .where('jobType', '=', 'restore')
    .where('status', '=', 'running')
    .execute()
  return new Set(rows.map(({ clientName }) => clientName))
}
