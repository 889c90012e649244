import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type pg from 'pg'
import type { DatabaseClock } from '../clock.ts'
import { createGroupCommit } from '../group-commit.ts'
import type { Log } from '../log.ts'
import { createBarriers, isBarrier } from './coherence/barriers.ts'
import { LEASE, Listener } from './coherence/listener.ts'
import type { Db } from './connect.ts'

/**
 * Keeps the caches of all processes on one database coherent (auth.md 2, gateway.md 17).
 *
 * Triggers NOTIFY on channel `gatehouse` what changed (`tags session:ID user:ID …`), delivered in commit order. A process
 * answers from a cache only while its lease runs. It renews the lease on the connection that listens, so a renewal
 * arrives after every notification committed before it. Hence, once each process has either acknowledged
 * a barrier or let one lease's length pass, no cache holds what was changed before the barrier.
 */
export type Coherence = {
  /** Whether caches may answer now. */
  isTrusted(): boolean
  /** Calls `apply` with every change, and `clear` when changes may have been missed. */
  subscribe(subscriber: Subscriber): void
  /**
   * Notifies every process of changes that have no trigger, and resolves like `settle`. Rejects when the control database cannot be
   * reached; then they are notified as soon as it can.
   */
  announce(tags: readonly string[]): Promise<void>
  /**
   * Listens to a channel of another component. `back` is called whenever the connection has come back, since what was sent meanwhile
   * is lost. Returns the function that stops it.
   */
  listen(channel: string, receive: (payload: string) => void, back: () => void): Promise<() => Promise<void>>
  /** Runs one statement on the connection that listens; throws while there is none. */
  ping(): Promise<void>
  /** Resolves when no process can still answer from what was committed over before this call. `atomically` calls it. */
  settle(): Promise<void>
  close(): Promise<void>
}

type Subscriber = { apply(tag: string): void; clear(): void }

const CHANNEL = 'gatehouse'

const NOTIFY = 'select pg_notify($1, tag) from unnest($2::text[]) as tag'

/** A table was emptied (0009_truncation.sql). */
const EVERYTHING = 'all'

/** A trigger names all rows of a statement at once (0006_notifications.sql); what is announced may contain spaces. */
const tagsIn = (payload: string): readonly string[] =>
  payload.startsWith('tags ') ? payload.split(' ').slice(1) : [payload]

type CoherenceOptions = {
  readonly url: string
  readonly pool: pg.Pool
  readonly id: string
  readonly log: Log
  /** Receives the database's time with each renewal of the lease. */
  readonly onTime: DatabaseClock['learn']
}

/** Leases of processes that ended without giving theirs up. A process that was only stuck writes its own again. */
export const deleteEndedLeases = async (db: Db): Promise<void> =>
  void (await sql`delete from service.process_lease where expires_at < clock_timestamp() - interval '1 minute'`.execute(
    db,
  ))

/** For a command that holds no caches: resolves when no process can still answer from what was committed over before this call. */
export async function outlastLeases(db: Db): Promise<void> {
  const { rows } = await sql`select from service.process_lease where expires_at > clock_timestamp()`.execute(
    db,
  )
  if (rows.length > 0) await sleep(LEASE)
}

export async function startCoherence({ pool, ...options }: CoherenceOptions): Promise<Coherence> {
  const subscribers = createSubscribers()
  const connection = () => listener.client ?? pool
  /** Tags that no connection could send: sent as soon as one can. */
  const unsent = new Set<string>()
  const keepUnsent = (tags: readonly string[]) => (error: unknown) => {
    for (const tag of tags) unsent.add(tag)
    throw error
  }
  const barriers = createBarriers({ id: options.id, common: CHANNEL, connection })
  const listener = new Listener({
    ...options,
    channels: [CHANNEL, barriers.channel],
    onLoss: subscribers.clear,
    async onReturn(client) {
      const tags = [...unsent]
      if (tags.length === 0) return
      // Before the statement: a tag that is added while it runs is of a later change.
      unsent.clear()
      await client.query(NOTIFY, [CHANNEL, tags]).catch(keepUnsent(tags))
    },
    onNotification(client, channel, payload) {
      if (channel === barriers.channel) barriers.acknowledge(payload)
      else if (isBarrier(payload)) barriers.answer(client, payload)
      else subscribers.apply(payload)
    },
  })
  // Callers that arrive while a barrier is under way share the next one, which begins after their commits.
  const pass = createGroupCommit<undefined, undefined>(Number.POSITIVE_INFINITY, async (callers) => {
    await barriers.pass()
    return callers.map(() => undefined)
  })
  const settle = async (): Promise<void> => pass(undefined)
  await listener.start()
  return {
    isTrusted: () => listener.isTrusted(),
    subscribe: subscribers.add,
    async announce(tags) {
      const values = [CHANNEL, tags]
      // The listener's connection may break before it has sent them. Sent twice, they do no harm.
      const sent = connection().query(NOTIFY, values)
      await sent
        .catch(() => pool.query(NOTIFY, values))
        .catch((error: unknown) => {
          for (const tag of tags) unsent.add(tag)
          throw error
        })
      await settle()
    },
    listen: (channel, receive, back) => listener.listen(channel, { receive, back }),
    async ping() {
      if (listener.client === undefined) throw new Error('there is no listener')
      await listener.client.query('select 1')
    },
    settle,
    close: () => listener.close(),
  }
}

type Subscribers = {
  add(subscriber: Subscriber): void
  /** Applies the changes that the payload of a notification names. */
  apply(payload: string): void
  clear(): void
}

function createSubscribers(): Subscribers {
  const all: Subscriber[] = []
  const clear = () => {
    for (const subscriber of all) subscriber.clear()
  }
  return {
    add: (subscriber) => void all.push(subscriber),
    clear,
    apply(payload) {
      if (payload === EVERYTHING) clear()
      else for (const tag of tagsIn(payload)) for (const subscriber of all) subscriber.apply(tag)
    },
  }
}
