import { type ExpressionBuilder, type Insertable, type Selectable, sql, type Updateable } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { DB, WebhookTable } from '#kernel/db/tables.ts'
import type { Page } from '../pagination.ts'

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

export const WEBHOOK_STATES = ['active', 'inactive', 'failing'] as const

type WebhookFilter = {
  readonly clientName?: string | undefined
  readonly state?: (typeof WEBHOOK_STATES)[number] | undefined
}

/** Oldest first. */
export const listWebhooks = (db: Db, filter: WebhookFilter, { limit, offset }: Page): Promise<Webhook[]> =>
  matching(db, filter).selectAll().orderBy('createdAt').orderBy('id').limit(limit).offset(offset).execute()

export async function countWebhooks(db: Db, filter: WebhookFilter): Promise<number> {
  const counted = matching(db, filter).select(({ fn }) => fn.countAll<string>().as('count'))
  return Number((await counted.executeTakeFirstOrThrow()).count)
}

function matching(db: Db, { clientName, state }: WebhookFilter) {
  const webhooks = db.selectFrom('webhook').where('deletedAt', 'is', null)
  const chosen = clientName === undefined ? webhooks : webhooks.where('clientName', '=', clientName)
  if (state === undefined) return chosen
  return state === 'failing' ? chosen.where(isFailing) : chosen.where('isActive', '=', state === 'active')
}

/** Its last attempts failed, or the service has set it inactive. */
const isFailing = ({ or, eb }: ExpressionBuilder<DB, 'webhook'>) =>
  or([eb('failingSince', 'is not', null), eb('disabledReason', 'is not', null)])

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

/** Whether a delivery waits that was made by this time. */
export async function hasWaiting(db: Db, webhookId: string, until: Date): Promise<boolean> {
  const waiting = db
    .selectFrom('webhookDelivery')
    .select('id')
    .where('webhookId', '=', webhookId)
    .where('nextAttemptAt', 'is not', null)
    .where('createdAt', '<=', until)
  return (await waiting.limit(1).executeTakeFirst()) !== undefined
}

type NewSecret = {
  readonly sealed: string
  readonly now: Date
  /** The end of the present secret. */
  readonly until: Date
  /** Largest number of former secrets. */
  readonly max: number
}

/** The present secret becomes a former one. Undefined if there are as many as allowed, or no webhook. */
export const replaceSecret = (
  db: Db,
  id: string,
  { sealed, now, until, max }: NewSecret,
): Promise<Webhook | undefined> =>
  db
    .updateTable('webhook')
    .set({
      sealedSecret: sealed,
      sealedFormerSecrets: sql<string[]>`${stillSigning('secret', now)} || sealed_secret`,
      formerSecretsUntil: sql<Date[]>`${stillSigning('until', now)} || ${until}::timestamptz`,
      updatedAt: now,
    })
    .where('id', '=', id)
    .where('deletedAt', 'is', null)
    .where(sql<boolean>`cardinality(${stillSigning('until', now)}) < ${max}`)
    .returningAll()
    .executeTakeFirst()

/** Drops the former secrets that do not sign any more. */
export async function dropEndedSecrets(db: Db, now: Date): Promise<void> {
  await db
    .updateTable('webhook')
    .set({
      sealedFormerSecrets: stillSigning('secret', now),
      formerSecretsUntil: stillSigning('until', now),
    })
    .where(sql<boolean>`${now}::timestamptz >= any (former_secrets_until)`)
    .execute()
}

/** Webhooks that are not removed, with all that is sealed. */
export const listSealedWebhooks = (
  db: Db,
  after: string,
  max: number,
): Promise<Pick<Webhook, 'id' | 'sealedSecret' | 'sealedHeaders' | 'sealedFormerSecrets'>[]> =>
  db
    .selectFrom('webhook')
    .select(['id', 'sealedSecret', 'sealedHeaders', 'sealedFormerSecrets'])
    .where('id', '>', after)
    .where('deletedAt', 'is', null)
    .orderBy('id')
    .limit(max)
    .execute()

/** Without effect when the value has changed meanwhile. */
export async function updateSealed(
  db: Db,
  id: string,
  column: 'sealedSecret' | 'sealedHeaders',
  { from, to }: { readonly from: string; readonly to: string },
): Promise<void> {
  await db
    .updateTable('webhook')
    .set({ [column]: to })
    .where('id', '=', id)
    .where(column, '=', from)
    .execute()
}

/** The same for the former secrets. */
export async function updateFormerSecrets(
  db: Db,
  id: string,
  { from, to }: { readonly from: readonly string[]; readonly to: string[] },
): Promise<void> {
  await db
    .updateTable('webhook')
    .set({ sealedFormerSecrets: to })
    .where('id', '=', id)
    .where(sql<boolean>`sealed_former_secrets = ${from}::text[]`)
    .execute()
}

/** The former secrets of a webhook that sign at this time, or their ends. */
const stillSigning = <Part extends 'secret' | 'until'>(part: Part, now: Date) =>
  sql<(Part extends 'secret' ? string : Date)[]>`array(select ${sql.ref(part)}
    from unnest(sealed_former_secrets, former_secrets_until) as former (secret, until) where until > ${now}::timestamptz)`

/** Wipes what is secret. The row stays until its deliveries are pruned. */
export async function deleteWebhook(db: Db, id: string, now: Date): Promise<void> {
  await updateWebhook(db, id, {
    isActive: false,
    sealedHeaders: null,
    sealedSecret: null,
    sealedFormerSecrets: [],
    formerSecretsUntil: [],
    updatedAt: now,
    deletedAt: now,
  })
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

/** The part of a webhook that an attempt needs. */
export type EndpointRow = Pick<
  Webhook,
  | 'id'
  | 'url'
  | 'routeKeys'
  | 'isActive'
  | 'sealedHeaders'
  | 'sealedSecret'
  | 'sealedFormerSecrets'
  | 'formerSecretsUntil'
  | 'timeoutMs'
>

/** A webhook that is not removed. */
export const findEndpoint = (db: Db, id: string): Promise<EndpointRow | undefined> =>
  endpoints(db).where('id', '=', id).executeTakeFirst()

/** Of the webhooks with this address, the newest ones. */
export const listEndpointsAt = (db: Db, url: string): Promise<EndpointRow[]> =>
  endpoints(db).where('url', '=', url).orderBy('id', 'desc').limit(100).execute()

const endpoints = (db: Db) =>
  db
    .selectFrom('webhook')
    .select(['id', 'url', 'routeKeys', 'isActive', 'timeoutMs'])
    .select(['sealedHeaders', 'sealedSecret', 'sealedFormerSecrets', 'formerSecretsUntil'])
    .where('deletedAt', 'is', null)

/** The columns of a webhook whose last attempt did not fail. */
export const NOT_FAILING = {
  consecutiveFailures: 0,
  failingSince: null,
  failingDays: 0,
  lastFailureAt: null,
} as const

/** Ends the count of failures in a row, if the webhook still has this address. */
export async function clearFailures(db: Db, id: string, url: string): Promise<void> {
  await db
    .updateTable('webhook')
    .set(NOT_FAILING)
    .where('id', '=', id)
    .where('url', '=', url)
    .where('failingSince', 'is not', null)
    .execute()
}

/** Counts a failed attempt. Returns the time of the first one in a row and the number of days; undefined when the address is another. */
export async function countFailure(
  db: Db,
  id: string,
  { url, now }: { readonly url: string; readonly now: Date },
): Promise<{ readonly failingSince: Date; readonly failingDays: number } | undefined> {
  const row = await db
    .updateTable('webhook')
    .set(({ eb, fn }) => ({
      consecutiveFailures: eb('consecutiveFailures', '+', 1),
      failingSince: fn.coalesce('failingSince', eb.val(now)),
      failingDays: sql<number>`failing_days + (last_failure_at is null or last_failure_at at time zone 'UTC' < date_trunc('day', ${now}::timestamptz at time zone 'UTC'))::int`,
      lastFailureAt: now,
    }))
    .where('id', '=', id)
    .where('url', '=', url)
    .returning(['failingSince', 'failingDays'])
    .executeTakeFirst()
  return row?.failingSince ? { ...row, failingSince: row.failingSince } : undefined
}

type Deactivation = {
  readonly url: string
  readonly now: Date
  readonly reason: string
  /** Only if it still fails since then. */
  readonly failingSince?: Date
}

/** Sets an active webhook with this address inactive; false when there is none any more. */
export async function deactivateWebhook(
  db: Db,
  id: string,
  { url, now, reason, failingSince }: Deactivation,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('webhook')
    .set({ isActive: false, disabledReason: reason, updatedAt: now })
    .where('id', '=', id)
    .where('url', '=', url)
    .where('isActive', '=', true)
    .where('deletedAt', 'is', null)
    .$if(failingSince !== undefined, (query) => query.where('failingSince', '=', failingSince ?? null))
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Webhooks whose last attempts failed, or that the service has set inactive; the worst first. */
export function listFailingWebhooks(db: Db) {
  return db
    .selectFrom('webhook')
    .select(['id', 'isActive', 'disabledReason', 'consecutiveFailures', 'failingSince'])
    .where('deletedAt', 'is', null)
    .where(isFailing)
    .orderBy('failingSince')
    .limit(100)
    .execute()
}
