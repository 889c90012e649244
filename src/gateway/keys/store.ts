import { type ExpressionBuilder, type Insertable, type Selectable, sql, type Updateable } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { ApiKeyConfigTable, ApiKeyTable, DB } from '#kernel/db/tables.ts'
import type { Page } from '../pagination.ts'

export type ApiKey = Selectable<ApiKeyTable>

/** A key, and when it was last used. */
export type UsedKey = ApiKey & { readonly lastUsedAt: Date | null }

const lastUsedAt = (key: ExpressionBuilder<DB, 'apiKey'>) =>
  key
    .selectFrom('apiKeyUse')
    .select('apiKeyUse.lastUsedAt')
    .whereRef('apiKeyUse.keyId', '=', 'apiKey.id')
    .as('lastUsedAt')

export function insertKey(db: Db, key: Insertable<ApiKeyTable>): Promise<UsedKey> {
  return db.insertInto('apiKey').values(key).returningAll().returning(lastUsedAt).executeTakeFirstOrThrow()
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

export function findUsedKey(db: Db, id: string): Promise<UsedKey | undefined> {
  return db.selectFrom('apiKey').selectAll().select(lastUsedAt).where('id', '=', id).executeTakeFirst()
}

export const KEY_STATES = ['active', 'inactive', 'expired'] as const

type KeyFilter = {
  readonly clientName?: string | undefined
  /** A part of the name, or of the public part (`svc_0123456789abcdef`). */
  readonly search?: string | undefined
  readonly state?: { readonly is: (typeof KEY_STATES)[number]; readonly at: Date } | undefined
}

/** Never used comes first, as the longest time ago. Without an expiry comes last. */
export const KEY_ORDERS = {
  created_at: { asc: sql`created_at`, desc: sql`created_at desc` },
  name: { asc: sql`lower(name)`, desc: sql`lower(name) desc` },
  last_used_at: { asc: sql`last_used_at nulls first`, desc: sql`last_used_at desc nulls last` },
  expires_at: { asc: sql`expires_at`, desc: sql`expires_at desc` },
} as const

export type KeyOrder = {
  readonly by: keyof typeof KEY_ORDERS
  readonly direction: 'asc' | 'desc'
}

export function listKeys(
  db: Db,
  { clientName, search, state, limit, offset }: KeyFilter & Page,
  { by, direction }: KeyOrder = { by: 'created_at', direction: 'asc' },
): Promise<UsedKey[]> {
  return db
    .selectFrom('apiKey')
    .selectAll()
    .select(lastUsedAt)
    .$if(clientName !== undefined, (keys) => keys.where('clientName', '=', clientName ?? ''))
    .$if(search !== undefined, (keys) =>
      keys.where(sql<boolean>`position(lower(${search}) in lower(name || E'\\nsvc_' || public_id)) > 0`),
    )
    .$if(state !== undefined, (keys) =>
      keys.where(
        sql<boolean>`case when not is_active then 'inactive' when expires_at <= ${state?.at} then 'expired' else 'active' end = ${state?.is}`,
      ),
    )
    .orderBy(KEY_ORDERS[by][direction])
    .orderBy('id', direction)
    .limit(limit)
    .offset(offset)
    .execute()
}

/** Notes that these keys were used at these times, in milliseconds. */
export async function upsertUses(db: Db, uses: ReadonlyMap<string, number>): Promise<void> {
  const [ids, times] = [[...uses.keys()], [...uses.values()].map((time) => new Date(time))]
  await sql`insert into service.api_key_use (key_id, last_used_at)
    select k.id, u.at from unnest(${ids}::uuid[], ${times}::timestamptz[]) u(id, at) join service.api_key k on k.id = u.id order by k.id
    on conflict (key_id) do update set last_used_at = greatest(api_key_use.last_used_at, excluded.last_used_at)`.execute(
    db,
  )
}

export function updateKey(db: Db, id: string, change: Updateable<ApiKeyTable>): Promise<UsedKey> {
  return db
    .updateTable('apiKey')
    .set(change)
    .where('id', '=', id)
    .returningAll()
    .returning(lastUsedAt)
    .executeTakeFirstOrThrow()
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
    .where(isOfClient(clientName))
    .execute()
}

/** Keys that are bound to a client of this name, or list it. With a limit, the planner would read the table in place of its indexes. */
export async function countKeysOf(db: Db, clientName: string): Promise<number> {
  const { count } = await db
    .selectFrom('apiKey')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where(isOfClient(clientName))
    .executeTakeFirstOrThrow()
  return Number(count)
}

const isOfClient = (clientName: string) =>
  sql<boolean>`client_name = ${clientName} or client_overrides @> array[${clientName}::text]`

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
