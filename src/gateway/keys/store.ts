import { type Insertable, type Selectable, sql, type Updateable } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { ApiKeyConfigTable, ApiKeyTable } from '#kernel/db/tables.ts'

export type ApiKey = Selectable<ApiKeyTable>

export function insertKey(db: Db, key: Insertable<ApiKeyTable>): Promise<ApiKey> {
  return db.insertInto('apiKey').values(key).returningAll().executeTakeFirstOrThrow()
}

export function findKey(db: Db, by: 'id' | 'publicId', value: string): Promise<ApiKey | undefined> {
  return db.selectFrom('apiKey').selectAll().where(by, '=', value).executeTakeFirst()
}

/** Other changes of the key wait until the transaction ends. */
export function lockKey(db: Db, id: string): Promise<ApiKey | undefined> {
  return db.selectFrom('apiKey').selectAll().where('id', '=', id).forNoKeyUpdate().executeTakeFirst()
}

/** Names need not be unique. */
export function findKeysNamed(db: Db, name: string): Promise<ApiKey[]> {
  return db.selectFrom('apiKey').selectAll().where('name', '=', name).orderBy('createdAt').limit(20).execute()
}

export function listKeys(
  db: Db,
  page: { readonly clientName?: string; readonly limit: number; readonly offset: number },
): Promise<ApiKey[]> {
  const keys = db.selectFrom('apiKey').selectAll().orderBy('createdAt').orderBy('id')
  const chosen = page.clientName === undefined ? keys : keys.where('clientName', '=', page.clientName)
  return chosen.limit(page.limit).offset(page.offset).execute()
}

export function updateKey(db: Db, id: string, change: Updateable<ApiKeyTable>): Promise<ApiKey> {
  return db.updateTable('apiKey').set(change).where('id', '=', id).returningAll().executeTakeFirstOrThrow()
}

/** Deactivates the keys that are bound to the client. */
export async function retireClient(db: Db, clientName: string, now: Date): Promise<void> {
  await db
    .updateTable('apiKey')
    .set({
      isActive: sql`is_active and client_name is distinct from ${clientName}`,
      clientOverrides: sql`array_remove(client_overrides, ${clientName})`,
      updatedAt: now,
    })
    .where(sql<boolean>`client_name = ${clientName} or client_overrides @> array[${clientName}::text]`)
    .execute()
}

export async function deleteKey(db: Db, id: string): Promise<boolean> {
  const { numDeletedRows } = await db.deleteFrom('apiKey').where('id', '=', id).executeTakeFirst()
  return numDeletedRows > 0n
}

export type KeyDecision = Selectable<ApiKeyConfigTable>

/** Run-time settings by client, with `*` for the default. */
export function listDecisions(db: Db): Promise<KeyDecision[]> {
  return db.selectFrom('apiKeyConfig').selectAll().orderBy('clientName').execute()
}

/** False when the setting is the same already. */
export async function upsertDecision(db: Db, decision: KeyDecision): Promise<boolean> {
  const { enforceApiKeys, updatedAt } = decision
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('apiKeyConfig')
    .values(decision)
    .onConflict((conflict) =>
      conflict
        .column('clientName')
        .doUpdateSet({ enforceApiKeys, updatedAt })
        .where('apiKeyConfig.enforceApiKeys', '!=', enforceApiKeys),
    )
    .executeTakeFirstOrThrow()
  return (numInsertedOrUpdatedRows ?? 0n) > 0n
}

export async function deleteDecision(db: Db, clientName: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('apiKeyConfig')
    .where('clientName', '=', clientName)
    .executeTakeFirst()
  return numDeletedRows > 0n
}
