import { sql } from 'kysely'
import type { Origin } from '../audit/origin.ts'
import type { Clock } from '../clock.ts'
import type { Coherence } from '../db/coherence.ts'
import type { Db } from '../db/connect.ts'
import type { PipelinedStatements } from '../db/pipelined-statements.ts'
import { EVENTS, type EventData, type EventName } from '../events.ts'
import { createGroupCommit } from '../group-commit.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { drawInAdvance, type Random, uuidv7 } from '../random.ts'
import { actorNamed } from './actor.ts'
import { type EventRows, type Match, type Payload, payloadText } from './payload.ts'
import { createSubscriptions, type Occasion, type Subscription } from './subscriptions.ts'

type DeliveryListener = (webhookIds: readonly string[], dueFrom: Date) => void

type Listener = (name: EventName, data: EventData[EventName]) => void

/** The events of this process, and the outbox from which webhooks are delivered (gateway.md 12). */
export type Events = {
  /** Writes the event for the webhooks that it matches; see `emit` (kernel.ts). Undefined when there are none. */
  record(
    kernel: Emitter,
    name: EventName,
    data: EventData[EventName],
    rows?: RowsOf,
  ): Promise<void> | undefined
  /** In a transaction: takes the statements and the time of `record`, and writes nothing. For answers that must not tell which it was. */
  rehearse(kernel: Emitter, name: EventName, data: EventData[EventName]): Promise<void>
  /** Whether a webhook may want such an event. Rows are only collected if one does. */
  isWanted(occasion: Occasion): boolean | Promise<boolean>
  /** Tells the listeners of this process. */
  tell(name: EventName, data: EventData[EventName]): void
  /** Listens to every event that this process emits, whether a webhook matches it or not. */
  subscribe(listener: Listener): void
  /** Calls the listener with the ids of webhooks that have new deliveries of this process, and the time since when these are due. */
  onDeliveries(listener: DeliveryListener): void
  /** Whether events of this request could not be written. Forgets it. */
  takeLost(requestId: string): boolean
}

/** The part of a kernel that emits. `db` may be a transaction. */
type Emitter = {
  readonly db: Db
  readonly origin: Pick<Origin, 'requestId' | 'actorId'>
  readonly afterCommit: (work: () => void) => void
}

type Emission = {
  readonly name: EventName
  readonly data: EventData[EventName]
  readonly rowsOf: RowsOf | undefined
}

/** Collects the rows; called at most once, and only if a webhook matches. */
export type RowsOf = () => EventRows

type OutboxParts = {
  readonly db: Db
  readonly pipelined: PipelinedStatements
  readonly coherence: Coherence
  readonly now: Clock
  readonly random: Random
  readonly metrics: Metrics
  readonly log: Log
}

export function createEvents({ db, now, metrics, log, ...parts }: OutboxParts): Events {
  const random = drawInAdvance(parts.random)
  const listeners: Listener[] = []
  const wakers: DeliveryListener[] = []
  const subscriptions = createSubscriptions(parts)
  const lost = createLostRequests()
  // Operations that end at the same time share a statement.
  const commit = createGroupCommit<OutboxEvent, undefined>(
    MAX_PER_STATEMENT,
    async (entries) => {
      await insertEvents(db, entries)
      return entries.map(() => undefined)
    },
    ({ deliveries }) => Math.max(MIN_WEIGHT, deliveries.length),
  )

  function entryOf(event: Omit<Payload, 'id' | 'at'>, webhooks: readonly Subscription[]): OutboxEvent {
    const at = now()
    const id = uuidv7(at, random)
    const deliveries = webhooks.map(({ id: webhookId }) => ({ id: uuidv7(at, random), webhookId }))
    return { id, name: event.name, at, body: payloadText({ ...event, id, at }), deliveries }
  }

  async function write(
    kernel: Emitter,
    { name, data, rowsOf }: Emission,
    subscribed: readonly Subscription[] | Promise<readonly Subscription[]>,
  ): Promise<void> {
    const webhooks = await subscribed
    const rows = webhooks.length > 0 ? rowsOf?.() : undefined
    const by: Record<Match, Subscription[]> = { met: [], unknown: [], unmet: [] }
    for (const webhook of webhooks) {
      const match = await judged(webhook, rows)
      // The right to read one table makes a webhook of it, which tells nothing of others.
      const isBeyond = webhook.tableName !== null && rows?.ofOtherTables === true
      by[match === 'met' && isBeyond ? 'unknown' : match].push(webhook)
    }
    const cause = causeOf(kernel)
    const entries: OutboxEvent[] = []
    if (by.met.length > 0) entries.push(entryOf({ name, data, rows, ...cause }, by.met))
    if (by.unknown.length > 0)
      entries.push(entryOf({ name, data, rows: { json: undefined }, ...cause }, by.unknown))
    const [first] = entries
    if (first === undefined) return
    await (kernel.db.isTransaction ? insertEvents(kernel.db, entries) : Promise.all(entries.map(commit)))
    const ids = [...by.met, ...by.unknown].map(({ id }) => id)
    kernel.afterCommit(() => {
      for (const wake of wakers) wake(ids, first.at)
    })
  }

  /** A filter that cannot be judged passes: its failure would lose the event for all other webhooks too. */
  async function judged({ id, filter }: Subscription, rows: EventRows | undefined): Promise<Match> {
    if (filter === null) return 'met'
    try {
      return (await rows?.judge(filter)) ?? 'unmet'
    } catch (error) {
      log.error(
        { event: 'webhook_filter_failed', webhook_id: id, error },
        'the filter of a webhook could not be judged, so the event is delivered',
      )
      return 'unknown'
    }
  }

  function lose({ name, data }: Emission, error: unknown): void {
    const requestId = 'request_id' in data ? data.request_id : null
    metrics.count('gatehouse_events_lost_total')
    log.error({ event: 'event_lost', name, requestId, error }, 'an event could not be written to the outbox')
    if (requestId !== null) lost.add(requestId)
  }

  return {
    record(kernel, name, data, rowsOf) {
      const subscribed = subscriptions.to(occasionOf(name, data), kernel.db)
      if ('length' in subscribed && subscribed.length === 0) return undefined
      const emission = { name, data, rowsOf }
      const written = write(kernel, emission, subscribed)
      // Outside of a transaction the operation is committed on the client's database, so its caller gets the success.
      return kernel.db.isTransaction ? written : written.catch((error) => lose(emission, error))
    },
    async rehearse({ db, origin }, name, data) {
      const webhooks = await subscriptions.to(occasionOf(name, data), db)
      if (webhooks.length === 0) return
      await insertEvents(db, [entryOf({ name, data, ...causeOf({ origin }) }, webhooks)], {
        isRehearsal: true,
      })
    },
    isWanted(occasion) {
      const subscribed = subscriptions.to(occasion, db)
      return 'then' in subscribed ? subscribed.then(isAny, () => false) : isAny(subscribed)
    },
    tell(name, data) {
      for (const listener of listeners) listener(name, data)
    },
    subscribe: (listener) => void listeners.push(listener),
    onDeliveries: (listener) => void wakers.push(listener),
    takeLost: lost.take,
  }
}

const causeOf = ({ origin: { requestId, actorId } }: Pick<Emitter, 'origin'>) => ({
  requestId,
  actor: actorNamed(actorId),
})

const isAny = (subscribed: readonly Subscription[]): boolean => subscribed.length > 0

function occasionOf(name: EventName, data: EventData[EventName]): Occasion {
  const client = 'client' in data ? data.client : null
  const table = EVENTS[name].tableScope === true && 'table' in data ? data.table : undefined
  return { name, client, table }
}

/** Deliveries: a statement has to end in time, however many webhooks an event has. */
const MAX_PER_STATEMENT = 1_000
/** So that a statement has at most 50 events, of 256 KB each at most. */
const MIN_WEIGHT = 20

type OutboxEvent = {
  readonly id: string
  readonly name: EventName
  readonly at: Date
  readonly body: string
  readonly deliveries: readonly { readonly id: string; readonly webhookId: string }[]
}

/** Writes the events with their deliveries. A webhook that was removed or deactivated in the meantime gets none. */
async function insertEvents(
  db: Db,
  entries: readonly OutboxEvent[],
  { isRehearsal = false }: { readonly isRehearsal?: boolean } = {},
): Promise<void> {
  const deliveries = entries.flatMap(({ id: eventId, at, deliveries }) =>
    deliveries.map((delivery) => ({ ...delivery, eventId, at })),
  )
  await sql`with event as (
      insert into service.webhook_event (id, route_key, body, created_at)
      select * from unnest(${entries.map(({ id }) => id)}::uuid[], ${entries.map(({ name }) => name)}::text[],
        ${entries.map(({ body }) => body)}::text[], ${entries.map(({ at }) => at)}::timestamptz[])
      where not ${isRehearsal}::boolean
    )
    insert into service.webhook_delivery (id, webhook_id, event_id, next_attempt_at, created_at)
    select delivery.id, webhook.id, delivery.event_id, delivery.at, delivery.at
      from unnest(${deliveries.map(({ id }) => id)}::uuid[], ${deliveries.map(({ webhookId }) => webhookId)}::uuid[],
        ${deliveries.map(({ eventId }) => eventId)}::uuid[], ${deliveries.map(({ at }) => at)}::timestamptz[])
        as delivery (id, webhook_id, event_id, at)
      join service.webhook on webhook.id = delivery.webhook_id
      where webhook.is_active and webhook.deleted_at is null and not ${isRehearsal}::boolean`.execute(db)
}

/** Requests that wait for their answer are few; those of jobs have none. */
const MAX_REQUESTS = 10_000

function createLostRequests() {
  const ids = new Set<string>()
  return {
    add(requestId: string): void {
      if (ids.size >= MAX_REQUESTS) ids.clear()
      ids.add(requestId)
    },
    take: (requestId: string): boolean => ids.size > 0 && ids.delete(requestId),
  }
}
