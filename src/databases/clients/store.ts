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

/** Locked for a change, which does not keep others from referring to the client. */
export const lockClientRow = (db: Db, name: string): Promise<ClientRow | undefined> =>
  db
    .selectFrom('databaseClient')
    .selectAll()
    .where('clientName', '=', name)
    .where('deletedAt', 'is', null)
    .forNoKeyUpdate()
    .executeTakeFirst()

/**
 * The names that clients have now. Their deletion waits until the transaction ends. A client whose deletion has begun is left out, so this
 * never waits, whatever rows the transaction holds already.
 */
export async function holdClients(db: Db, names: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('databaseClient')
    .select('clientName')
    .where('clientName', 'in', names)
    .where('deletedAt', 'is', null)
    .forKeyShare()
    .skipLocked()
    .execute()
  return new Set(rows.map(({ clientName }) => clientName))
}

/** The names that clients have or had. */
export async function listKnownNames(db: Db, names: readonly string[]): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('databaseClient')
    .select('clientName')
    .distinct()
    .where('clientName', 'in', names)
    .execute()
  return rows.map(({ clientName }) => clientName)
}

/** Waits for transactions that hold the client (`holdClients`), and keeps others from it. False if there is no such client. */
export async function lockClient(db: Db, name: string): Promise<boolean> {
  const row = await db
    .selectFrom('databaseClient')
    .select('id')
    .where('clientName', '=', name)
    .where('deletedAt', 'is', null)
    .forUpdate()
    .executeTakeFirst()
  return row !== undefined
}

/** Keeps the row as a record of the client and deletes the credentials. Call `lockClient` before. */
export async function deleteClient(db: Db, name: string, now: Date): Promise<boolean> {
  const row = await updateClient(db, name, {
    deletedAt: now,
    updatedAt: now,
    sealedUrl: null,
    urlEnvVar: null,
    sealedDirectUrl: null,
    directUrlEnvVar: null,
  })
  return row !== undefined
}

/** Has no effect when the URL was changed meanwhile. */
export async function resealClient(
  db: Db,
  id: string,
  column: 'sealedUrl' | 'sealedDirectUrl',
  { from, to }: { readonly from: string; readonly to: string | null },
): Promise<void> {
  await db
    .updateTable('databaseClient')
    .set({ [column]: to })
    .where('id', '=', id)
    .where(column, '=', from)
    .execute()
}

/** The only statement that does not notify other processes. */
export async function markSeen(db: Db, id: string, now: Date): Promise<void> {
  await db.updateTable('databaseClient').set({ lastSeenAt: now }).where('id', '=', id).execute()
}

/** Clients that are being restored, each with its database as soon as that is known. */
export const listRestoring = (
  db: Db,
): Promise<readonly { readonly clientName: string; readonly database: string | null }[]> =>
  db
    .selectFrom('backupJob')
    .select(['clientName', 'database'])
    .where('jobType', '=', 'restore')
    .where('status', '=', 'running')
    .execute()
