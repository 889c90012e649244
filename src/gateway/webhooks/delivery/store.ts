import { type Selectable, sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { WebhookDeliveryTable } from '#kernel/db/tables.ts'

export type Delivery = Selectable<WebhookDeliveryTable>

/** A delivery that this process may attempt until its lease ends. */
export type ClaimedDelivery = Pick<Delivery, 'id' | 'webhookId' | 'eventId' | 'attempt'> & {
  readonly claimedUntil: Date
  readonly dueAt: Date
  /** The text that is signed and sent; null when it is long, and read when it is needed (`readBody`). */
  readonly body: string | null
}

/** Largest number of deliveries of one webhook that a claim takes. */
export const MAX_PER_WEBHOOK = 100

/** Bytes of an event that a claim returns. What waits in a process is many claims, and an event may have 256 KB of rows. */
const MAX_CLAIMED_BODY = 16_384

/** How much longer a lease is than the time of one attempt. */
const LEASE_MARGIN = '10 seconds'

/** No lease is longer, whose process has a clock that is up to a minute ahead. */
const LONGEST_LEASE = '100 seconds'

/**
 * Part of a statement whose commit need not wait for the disk: what a crash of the database server takes back is attempted again, as
 * after the death of a process. The setting ends with the transaction.
 */
const ASYNCHRONOUSLY = sql`select set_config('synchronous_commit', 'off', true)`

export type DueWebhook = { readonly id: string; readonly dueFrom: Date }

export type ClaimRequest = {
  readonly webhookId: string
  readonly free: number
  /** No delivery that was due before is looked for. Index entries of those that are done stay until a vacuum, and each would be read. */
  readonly dueFrom: Date
}

/**
 * Takes due deliveries of these webhooks, oldest first, at most `free` of each. A row that another process claims at this moment is
 * skipped. A process that dies holds its rows until the leases end. The work is proportional to the rows taken, whatever the number of
 * due rows: each webhook is one range of the index.
 */
export async function claimDeliveries(
  db: Db,
  now: Date,
  requests: readonly ClaimRequest[],
): Promise<readonly ClaimedDelivery[]> {
  const column = <Name extends keyof ClaimRequest>(name: Name) => requests.map((request) => request[name])
  const { rows } = await sql<ClaimedDelivery>`
    select claimed.id, claimed.webhook_id as "webhookId", claimed.event_id as "eventId", claimed.attempt, claimed.due_at as "dueAt",
      claimed.claimed_until as "claimedUntil", claimed.body
    from (${ASYNCHRONOUSLY}) async, service.claim_deliveries(${column('webhookId')}, ${column('free')}, ${column('dueFrom')}, ${now},
      ${LEASE_MARGIN}, ${LONGEST_LEASE}, ${MAX_CLAIMED_BODY}) as claimed`.execute(db)
  return rows
}

export async function readBody(db: Db, eventId: string): Promise<string> {
  const event = db.selectFrom('webhookEvent').select('body').where('id', '=', eventId)
  return (await event.executeTakeFirstOrThrow()).body
}

/** The active webhooks with a delivery that is due, and since when. One look into the index for each active webhook. */
export async function findDueWebhooks(db: Db, now: Date): Promise<readonly DueWebhook[]> {
  const { rows } = await sql<DueWebhook>`
    select w.id, due.next_attempt_at as "dueFrom" from service.webhook w
    cross join lateral (
      -- In the order of the index: a plan for any time expects a third to be due, and looks for the first one in the whole table.
      select d.next_attempt_at from service.webhook_delivery d where d.webhook_id = w.id and d.next_attempt_at <= ${now}
        and (d.claimed_until is null or d.claimed_until <= ${now} or d.claimed_until > ${now}::timestamptz + ${LONGEST_LEASE}::interval)
      order by d.next_attempt_at limit 1
    ) due
    where w.is_active and w.deleted_at is null`.execute(db)
  return rows
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

/** Gives claims back that were not attempted: they are due, as before. */
export async function releaseClaims(
  db: Db,
  claims: readonly Pick<ClaimedDelivery, 'id' | 'claimedUntil'>[],
): Promise<void> {
  const ids = claims.map(({ id }) => id)
  const leases = claims.map(({ claimedUntil }) => claimedUntil)
  await sql`
    update service.webhook_delivery d set claimed_until = null
    from unnest(${ids}::uuid[], ${leases}::timestamptz[]) as claim (id, claimed_until)
    where d.id = claim.id and d.claimed_until = claim.claimed_until`.execute(db)
}
