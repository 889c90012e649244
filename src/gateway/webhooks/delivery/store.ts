import { type Selectable, sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { WebhookDeliveryTable } from '#kernel/db/tables.ts'

export type Delivery = Selectable<WebhookDeliveryTable>

/** A delivery that this process may attempt until its lease ends. */
export type ClaimedDelivery = Pick<Delivery, 'id' | 'webhookId' | 'eventId' | 'attempt'> & {
  readonly claimedUntil: Date
  /** The text that is signed and sent; null when it is long, and read when it is needed (`readBody`). */
  readonly body: string | null
}

/** Largest number of deliveries of one webhook that a claim takes. A constant, so that the planner knows how few rows it means. */
export const MAX_PER_WEBHOOK = 100

/** Bytes of an event that a claim returns. What waits in a process is many claims, and an event may have 256 KB of rows. */
const MAX_CLAIMED_BODY = 16_384

/** Milliseconds that a lease is longer than the time of one attempt. */
const LEASE_MARGIN = 10_000

/**
 * Part of a statement whose commit need not wait for the disk: what a crash of the database server takes back is attempted again, as
 * after the death of a process. The setting ends with the transaction.
 */
const ASYNCHRONOUSLY = sql`select set_config('synchronous_commit', 'off', true)`

export type ClaimRequest = { readonly webhookId: string; readonly free: number }

/**
 * Takes due deliveries of these webhooks, oldest first, at most `free` of each. A row that another process claims at this moment is
 * skipped. A process that dies holds its rows until the leases end. The work is proportional to the rows taken, whatever the number of
 * due rows: each webhook is one range of the index. The arrays of ids keep the planner from hashing whole tables.
 */
export async function claimDeliveries(
  db: Db,
  now: Date,
  requests: readonly ClaimRequest[],
): Promise<readonly ClaimedDelivery[]> {
  const ids = requests.map(({ webhookId }) => webhookId)
  const free = requests.map((request) => request.free)
  const { rows } = await sql<ClaimedDelivery>`
    with async as (${ASYNCHRONOUSLY}), due as (
      select found.id, found.place <= request.free as taken
      from async cross join unnest(${ids}::uuid[], ${free}::integer[]) as request (webhook_id, free)
      join service.webhook w on w.id = request.webhook_id and w.is_active and w.deleted_at is null
      cross join lateral (
        select locked.id, row_number() over () as place from (
          select d.id from service.webhook_delivery d
          where d.webhook_id = w.id and d.next_attempt_at <= ${now}
          order by d.next_attempt_at limit ${sql.lit(MAX_PER_WEBHOOK)}
          for update skip locked
        ) locked
      ) found
    )
    update service.webhook_delivery d
    set claimed_until = ${now}::timestamptz + (w.timeout_ms + ${sql.lit(LEASE_MARGIN)}) * interval '1 millisecond',
      next_attempt_at = ${now}::timestamptz + (w.timeout_ms + ${sql.lit(LEASE_MARGIN)}) * interval '1 millisecond'
    from service.webhook w, service.webhook_event e
    where d.id = any (array(select id from due where taken)) and w.id = d.webhook_id and e.id = d.event_id
    returning d.id, d.webhook_id as "webhookId", d.event_id as "eventId", d.attempt, d.claimed_until as "claimedUntil",
      case when octet_length(e.body) <= ${sql.lit(MAX_CLAIMED_BODY)} then e.body end as body`.execute(db)
  return rows
}

export async function readBody(db: Db, eventId: string): Promise<string> {
  const event = db.selectFrom('webhookEvent').select('body').where('id', '=', eventId)
  return (await event.executeTakeFirstOrThrow()).body
}

/** The active webhooks with a delivery that is due. One look into the index for each active webhook. */
export async function findDueWebhooks(db: Db, now: Date): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    select w.id from service.webhook w
    cross join lateral (
      -- In the order of the index: a plan for any time expects a third to be due, and looks for the first one in the whole table.
      select from service.webhook_delivery d where d.webhook_id = w.id and d.next_attempt_at <= ${now}
      order by d.next_attempt_at limit 1
    ) due
    where w.is_active and w.deleted_at is null`.execute(db)
  return rows.map(({ id }) => id)
}

/** The end of one attempt. */
export type Outcome = Pick<
  Delivery,
  'id' | 'attempt' | 'responseStatus' | 'responseBody' | 'error' | 'durationMs'
> & {
  readonly claimedUntil: Date
  readonly status: 'succeeded' | 'retrying' | 'failed'
  readonly nextAttemptAt: Date | null
}

/**
 * Writes the outcomes of claims that still hold; another process has taken over the others. Returns for each id whether attempts of its
 * webhook have failed until now.
 */
export async function writeOutcomes(
  db: Db,
  outcomes: readonly Outcome[],
): Promise<ReadonlyMap<string, { readonly isFailing: boolean }>> {
  const column = <Name extends keyof Outcome>(name: Name) => outcomes.map((outcome) => outcome[name])
  const { rows } = await sql<{ id: string; isFailing: boolean }>`
    select written.id, written.is_failing as "isFailing"
    from (${ASYNCHRONOUSLY}) async, service.write_outcomes(${column('id')}, ${column('claimedUntil')}, ${column('status')},
      ${column('attempt')}, ${column('nextAttemptAt')}, ${column('responseStatus')}, ${column('responseBody')}, ${column('error')},
      ${column('durationMs')}) as written`.execute(db)
  return new Map(rows.map((row) => [row.id, row]))
}

/** Gives claims back that were not attempted: they are due now. */
export async function releaseClaims(
  db: Db,
  now: Date,
  claims: readonly Pick<ClaimedDelivery, 'id' | 'claimedUntil'>[],
): Promise<void> {
  const ids = claims.map(({ id }) => id)
  const leases = claims.map(({ claimedUntil }) => claimedUntil)
  await sql`
    update service.webhook_delivery d set next_attempt_at = ${now}, claimed_until = null
    from unnest(${ids}::uuid[], ${leases}::timestamptz[]) as claim (id, claimed_until)
    where d.id = claim.id and d.claimed_until = claim.claimed_until`.execute(db)
}
