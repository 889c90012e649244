import { type Selectable, sql } from 'kysely'
import type { Page } from '#gateway/pagination.ts'
import type { Db } from '#kernel/db/connect.ts'
import type { WebhookDeliveryTable } from '#kernel/db/tables.ts'
import { type CountMode, countRows, type Total } from '#kernel/db/total.ts'
import type { Delivery } from '../delivery/store.ts'

export type LoggedDelivery = Delivery & { readonly routeKey: string }

type DeliveryFilter = {
  readonly webhookId?: string | undefined
  readonly status?: string | undefined
  /** The smallest id. */
  readonly from?: string | undefined
}

/** Newest first. */
export function listDeliveries(
  db: Db,
  filter: DeliveryFilter,
  { limit, offset }: Page,
): Promise<readonly LoggedDelivery[]> {
  return matching(db, filter)
    .innerJoin('webhookEvent as e', 'e.id', 'd.eventId')
    .selectAll('d')
    .select('e.routeKey')
    .$if(filter.webhookId !== undefined, (query) => query.orderBy('d.webhookId'))
    .orderBy('d.id', 'desc')
    .limit(limit)
    .offset(offset)
    .execute()
}

/** The newest delivery of each of these webhooks that has any, by a range as in `matching`. */
export async function lastDeliveries(db: Db, webhookIds: readonly string[]) {
  const { rows } = await sql<Pick<Delivery, 'webhookId' | 'status' | 'responseStatus' | 'createdAt'>>`
    select d.* from unnest(${webhookIds}::uuid[]) as w (id) cross join lateral (
      select webhook_id, status, response_status, created_at from service.webhook_delivery
      where webhook_id >= w.id and webhook_id <= w.id order by webhook_id, id desc limit 1) d`.execute(db)
  return rows
}

export const countDeliveries = (db: Db, filter: DeliveryFilter, mode?: CountMode): Promise<Total> =>
  countRows(db, matching(db, filter).select('d.id'), mode, matching(db, filter, ['=']).select('d.id'))

/**
 * The deliveries of a webhook are a range. By `=`, which has the better estimate, PostgreSQL would know the order of `id` alone to be enough, and
 * where one webhook has nearly all deliveries it would read these to find those of another.
 */
function matching(
  db: Db,
  { webhookId, status, from }: DeliveryFilter,
  comparisons: readonly ('=' | '>=' | '<=')[] = ['>=', '<='],
) {
  let deliveries = db.selectFrom('webhookDelivery as d')
  if (webhookId !== undefined)
    for (const comparison of comparisons) deliveries = deliveries.where('d.webhookId', comparison, webhookId)
  if (status !== undefined) deliveries = deliveries.where('d.status', '=', status)
  if (from !== undefined) deliveries = deliveries.where('d.id', '>=', from)
  return deliveries
}

/** Oldest first. */
export function listAfter(
  db: Db,
  { webhookId, status }: { readonly webhookId: string; readonly status: string },
  after: string,
  max: number,
): Promise<readonly Pick<Delivery, 'id' | 'createdAt'>[]> {
  return matching(db, { webhookId, status })
    .select(['d.id', 'd.createdAt'])
    .where('d.id', '>', after)
    .orderBy('d.webhookId', 'desc')
    .orderBy('d.id')
    .limit(max)
    .execute()
}

export type SentDelivery = LoggedDelivery & { readonly body: string }

/** With the body of its event. */
export function findDelivery(db: Db, webhookId: string, id: string): Promise<SentDelivery | undefined> {
  return db
    .selectFrom('webhookDelivery as d')
    .innerJoin('webhookEvent as e', 'e.id', 'd.eventId')
    .selectAll('d')
    .select(['e.routeKey', 'e.body'])
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

/** The same for many, unless their status has changed meanwhile. */
export async function restartDeliveries(
  db: Db,
  { status }: { readonly status: string },
  ids: readonly string[],
  now: Date,
): Promise<number> {
  const { numAffectedRows } = await sql`
    update service.webhook_delivery set status = 'retrying', attempt = 0, next_attempt_at = ${now}, claimed_until = null
    where id = any (${ids}::uuid[]) and status = ${status} and (claimed_until is null or claimed_until <= ${now})`.execute(
    db,
  )
  return Number(numAffectedRows)
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
