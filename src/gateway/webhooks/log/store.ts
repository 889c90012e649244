import type { Selectable } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { WebhookDeliveryTable } from '#kernel/db/tables.ts'
import type { Delivery } from '../delivery/store.ts'

export type LoggedDelivery = Delivery & { readonly routeKey: string }

export type LogQuery = {
  readonly webhookId?: string | undefined
  readonly status?: string | undefined
  readonly limit: number
  readonly offset: number
}

/** Newest first. */
export function listDeliveries(
  db: Db,
  { webhookId, status, limit, offset }: LogQuery,
): Promise<readonly LoggedDelivery[]> {
  return db
    .selectFrom('webhookDelivery as d')
    .innerJoin('webhookEvent as e', 'e.id', 'd.eventId')
    .selectAll('d')
    .select('e.routeKey')
    .$if(webhookId !== undefined, (query) => query.where('d.webhookId', '=', webhookId ?? ''))
    .$if(status !== undefined, (query) => query.where('d.status', '=', status ?? ''))
    .orderBy('d.id', 'desc')
    .limit(limit)
    .offset(offset)
    .execute()
}

export async function countDeliveries(
  db: Db,
  webhookId: string,
  status: string | undefined,
): Promise<number> {
  const { total } = await db
    .selectFrom('webhookDelivery')
    .select(({ fn }) => fn.countAll<string>().as('total'))
    .where('webhookId', '=', webhookId)
    .$if(status !== undefined, (query) => query.where('status', '=', status ?? ''))
    .executeTakeFirstOrThrow()
  return Number(total)
}

export function findDelivery(db: Db, webhookId: string, id: string): Promise<LoggedDelivery | undefined> {
  return db
    .selectFrom('webhookDelivery as d')
    .innerJoin('webhookEvent as e', 'e.id', 'd.eventId')
    .selectAll('d')
    .select('e.routeKey')
    .where('d.id', '=', id)
    .where('d.webhookId', '=', webhookId)
    .executeTakeFirst()
}

/** Makes a delivery due, with all its attempts, unless a worker has it at this moment. */
export function restartDelivery(
  db: Db,
  webhookId: string,
  id: string,
  now: Date,
): Promise<Delivery | undefined> {
  return db
    .updateTable('webhookDelivery')
    .set({ status: 'retrying', attempt: 0, nextAttemptAt: now, claimedUntil: null })
    .where('id', '=', id)
    .where('webhookId', '=', webhookId)
    .where((where) => where.or([where('claimedUntil', 'is', null), where('claimedUntil', '<=', now)]))
    .returningAll()
    .executeTakeFirst()
}

/** A delivery that was made outside of the queue, and its event. */
export async function insertFinishedDelivery(
  db: Db,
  event: { readonly id: string; readonly routeKey: string; readonly body: string },
  delivery: Selectable<WebhookDeliveryTable>,
): Promise<void> {
  await db
    .with('event', (query) =>
      query.insertInto('webhookEvent').values({ ...event, createdAt: delivery.createdAt }),
    )
    .insertInto('webhookDelivery')
    .values(delivery)
    .execute()
}
