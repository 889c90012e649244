import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'

/** Deletes at most `max` deliveries of events that are older; returns their number. */
export async function deleteOldDeliveries(db: Db, before: Date, max: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from service.webhook_delivery where id = any (array(
      select d.id from service.webhook_event e join service.webhook_delivery d on d.event_id = e.id
      where e.created_at < ${before} order by e.created_at limit ${sql.lit(max)}))`.execute(db)
  return Number(numAffectedRows)
}

/** Deletes at most `max` events that are older and have no deliveries; returns their number. */
export async function deleteOldEvents(db: Db, before: Date, max: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from service.webhook_event where id = any (array(
      select e.id from service.webhook_event e
      where e.created_at < ${before} and not exists (select from service.webhook_delivery d where d.event_id = e.id)
      order by e.created_at limit ${sql.lit(max)}))`.execute(db)
  return Number(numAffectedRows)
}

/** Deletes at most `max` deliveries of removed webhooks; returns their number. */
export async function deleteDeliveriesOfRemoved(db: Db, max: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from service.webhook_delivery where id = any (array(
      select d.id from service.webhook w
      cross join lateral (select id from service.webhook_delivery where webhook_id = w.id limit ${sql.lit(max)}) d
      where w.deleted_at is not null limit ${sql.lit(max)}))`.execute(db)
  return Number(numAffectedRows)
}

/** Deletes webhooks that were removed before and have no deliveries. */
export async function deleteRemovedWebhooks(db: Db, before: Date): Promise<void> {
  await sql`delete from service.webhook w where w.deleted_at < ${before}
    and not exists (select from service.webhook_delivery d where d.webhook_id = w.id)`.execute(db)
}

/** Deliveries that wait, counted up to `max`. */
export async function countWaiting(db: Db, max: number): Promise<number> {
  const { rows } = await sql<{ waiting: string }>`
    select count(*) as waiting from
      (select from service.webhook_delivery where next_attempt_at is not null limit ${sql.lit(max)}) w`.execute(
    db,
  )
  return Number(rows[0]?.waiting ?? 0)
}
