import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'

/**
 * Deletes at most `max` deliveries of events that are older, unless an active webhook waits for them; returns their number. One that is made due
 * again meanwhile has a lock, and stays.
 */
export async function deleteOldDeliveries(db: Db, before: Date, max: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from service.webhook_delivery where id = any (array(
      select d.id from service.webhook_event e join service.webhook_delivery d on d.event_id = e.id
      join service.webhook w on w.id = d.webhook_id
      where e.created_at < ${before} and (d.next_attempt_at is null or not w.is_active)
      order by e.created_at limit ${sql.lit(max)} for update of d skip locked))`.execute(db)
  return Number(numAffectedRows)
}

/** Makes at most `max` deliveries due now whose next attempt is after `latest`. One that is changed meanwhile has a lock, and stays. */
export async function hastenDeliveries(
  db: Db,
  { latest, now }: { readonly latest: Date; readonly now: Date },
  max: number,
): Promise<void> {
  await sql`
    update service.webhook_delivery set next_attempt_at = ${now}, claimed_until = null where id = any (array(
      select d.id from service.webhook w cross join lateral (
        select id from service.webhook_delivery where webhook_id = w.id and next_attempt_at > ${latest}
        limit ${sql.lit(max)} for update skip locked
      ) d limit ${sql.lit(max)}))`.execute(db)
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
