import type { Insertable, Selectable, Updateable } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { WebhookTable } from '#kernel/db/tables.ts'

export type Webhook = Selectable<WebhookTable>

export const insertWebhook = (db: Db, webhook: Insertable<WebhookTable>): Promise<Webhook> =>
  db.insertInto('webhook').values(webhook).returningAll().executeTakeFirstOrThrow()

export const findWebhook = (db: Db, id: string): Promise<Webhook | undefined> =>
  db.selectFrom('webhook').selectAll().where('id', '=', id).where('deletedAt', 'is', null).executeTakeFirst()

export const lockWebhook = (db: Db, id: string): Promise<Webhook | undefined> =>
  db
    .selectFrom('webhook')
    .selectAll()
    .where('id', '=', id)
    .where('deletedAt', 'is', null)
    .forNoKeyUpdate()
    .executeTakeFirst()

export type WebhookPage = {
  readonly clientName?: string | undefined
  readonly limit: number
  readonly offset: number
}

export function listWebhooks(db: Db, { clientName, limit, offset }: WebhookPage): Promise<Webhook[]> {
  const webhooks = db.selectFrom('webhook').selectAll().where('deletedAt', 'is', null)
  const chosen = clientName === undefined ? webhooks : webhooks.where('clientName', '=', clientName)
  return chosen.orderBy('createdAt').orderBy('id').limit(limit).offset(offset).execute()
}

export async function countWebhooks(db: Db, clientName: string | undefined): Promise<number> {
  const webhooks = db
    .selectFrom('webhook')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('deletedAt', 'is', null)
  const chosen = clientName === undefined ? webhooks : webhooks.where('clientName', '=', clientName)
  return Number((await chosen.executeTakeFirstOrThrow()).count)
}

export const updateWebhook = (
  db: Db,
  id: string,
  change: Updateable<WebhookTable>,
): Promise<Webhook | undefined> =>
  db
    .updateTable('webhook')
    .set(change)
    .where('id', '=', id)
    .where('deletedAt', 'is', null)
    .returningAll()
    .executeTakeFirst()

/** The present secret becomes the previous one, in the same statement that reads it. */
export const replaceSecret = (
  db: Db,
  id: string,
  { sealed, until, now }: { readonly sealed: string; readonly until: Date; readonly now: Date },
): Promise<Webhook | undefined> =>
  db
    .updateTable('webhook')
    .set(({ ref }) => ({
      sealedSecret: sealed,
      sealedPreviousSecret: ref('sealedSecret'),
      previousSecretUntil: until,
      updatedAt: now,
    }))
    .where('id', '=', id)
    .where('deletedAt', 'is', null)
    .returningAll()
    .executeTakeFirst()

/** Wipes what is secret. The row stays until its deliveries are pruned. */
export async function deleteWebhook(db: Db, id: string, now: Date): Promise<boolean> {
  const removed = await updateWebhook(db, id, {
    isActive: false,
    sealedHeaders: null,
    sealedSecret: null,
    sealedPreviousSecret: null,
    previousSecretUntil: null,
    updatedAt: now,
    deletedAt: now,
  })
  return removed !== undefined
}

/** Deactivates the webhooks of a client. */
export async function deactivateWebhooksOf(
  db: Db,
  clientName: string,
  { reason, now }: { readonly reason: string; readonly now: Date },
): Promise<void> {
  await db
    .updateTable('webhook')
    .set({ isActive: false, disabledReason: reason, updatedAt: now })
    .where('clientName', '=', clientName)
    .where('isActive', '=', true)
    .where('deletedAt', 'is', null)
    .execute()
}
