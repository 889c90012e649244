import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type pg from 'pg'
import { DATABASE_TIME, type DatabaseClock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Db } from './connect.ts'
import { GuardedClient } from './guarded-client.ts'
import { systemSession } from './session-settings.ts'

/**
 * Keeps the caches of all processes on one database true (auth.md 2, gateway.md 17).
 *
 * Triggers NOTIFY on channel `gatehouse` what changed (`tags session:ID user:ID …`), delivered in commit order. A process
 * answers from a cache only while its lease runs. It renews the lease on the connection that listens, so a renewal
 * arrives after every notification committed before it. Hence whoever waits until each process has either acknowledged
 * a barrier or let one lease's length pass knows that nobody still believes what was changed.
 */
export type Coherence = {
  /** May a cache be believed right now? */
  isTrusted(): boolean
  /** Tells `apply` every change, and `clear` when changes may have been missed. */
  subscribe(subscriber: Subscriber): void
  /** Tells every process what has changed where no trigger of ours sees it, and resolves like `settle`. */
  announce(tags: readonly string[]): Promise<void>
  /**
   * Hears a channel of somebody else's on the connection that listens. `back` is called whenever it has come back, since what was
   * said meanwhile is lost. Returns what ends it.
   */
  listen(channel: string, receive: (payload: string) => void, back: () => void): Promise<() => Promise<void>>
  /** One question on the connection that listens; throws while there is none. */
  ping(): Promise<void>
  /** Resolves when no process can still answer from what was committed over before this call. */
  settle(): Promise<void>
  close(): Promise<void>
}

export type Subscriber = { apply(tag: string): void; clear(): void }

/** How long a process may believe its caches without hearing from the database, milliseconds. */
const LEASE = 3_000
const RENEWAL = LEASE / 3

const CHANNEL = 'gatehouse'

/** A table was emptied (0009_truncation.sql). */
const EVERYTHING = 'all'

/** A trigger names all rows of a statement at once (0006_notifications.sql); what is announced may contain spaces. */
const tagsIn = (payload: string): readonly string[] =>
  payload.startsWith('tags ') ? payload.split(' ').slice(1) : [payload]

const listenTo = (client: pg.Client, channel: string): string => `listen ${client.escapeIdentifier(channel)}`

export type CoherenceOptions = {
  readonly url: string
  readonly pool: pg.Pool
  readonly id: string
  readonly log: Log
  /** Hears the database's time with each renewal of the lease. */
  readonly onTime: DatabaseClock['learn']
}

/** Rows of processes that ended without a word. One that was only stuck writes its own anew. */
export const deleteEndedLeases = async (db: Db): Promise<void> =>
  void (await sql`delete from service.process_lease where expires_at < clock_timestamp() - interval '1 minute'`.execute(
    db,
  ))

export async function startCoherence(options: CoherenceOptions): Promise<Coherence> {
  const { pool, id, log } = options
  const ackChannel = `gatehouse_ack_${id.replaceAll('-', '')}`
  const subscribers: Subscriber[] = []
  const waiting = new Map<string, (process: string) => void>()
  const heard = new Map<string, { receive(payload: string): void; back(): void }>()
  const closing = new AbortController()
  let listener: pg.Client | undefined
  let trustedUntil = 0
  let barriers = 0

  const receive = (client: pg.Client, channel: string, payload: string): void => {
    const other = heard.get(channel)
    if (other !== undefined) other.receive(payload)
    else if (channel === ackChannel) {
      const [barrier = '', process = ''] = payload.split(' ')
      waiting.get(barrier)?.(process)
    } else if (payload.startsWith('barrier ')) {
      const [, barrier, asker] = payload.split(' ')
      if (asker === ackChannel) return
      // If this is lost the asker waits one lease longer, no more.
      client.query('select pg_notify($1, $2)', [asker, `${barrier} ${id}`]).catch(() => {})
    } else if (payload === EVERYTHING) {
      for (const subscriber of subscribers) subscriber.clear()
    } else {
      for (const tag of tagsIn(payload)) for (const subscriber of subscribers) subscriber.apply(tag)
    }
  }

  const lose = (client: pg.Client, error?: Error): void => {
    if (listener !== client) return
    listener = undefined
    trustedUntil = 0
    for (const subscriber of subscribers) subscriber.clear()
    if (!closing.signal.aborted)
      log.warn({ event: 'listener_lost', error }, 'caches are bypassed until the listener is back')
  }

  const drop = (client: pg.Client, error: unknown): void => {
    lose(client, error instanceof Error ? error : undefined)
    client.end().catch(() => {})
  }

  const renew = async (client: pg.Client): Promise<void> => {
    const asked = performance.now()
    const { rows } = await client.query<{ now: number }>(
      `insert into service.process_lease (id, expires_at) values ($1, clock_timestamp() + $2 * interval '1 millisecond')
       on conflict (id) do update set expires_at = excluded.expires_at returning ${DATABASE_TIME} as now`,
      [id, LEASE],
    )
    options.onTime(asked, rows[0]?.now ?? Number.NaN, performance.now())
    // Counted from before the question, so this clock ends the lease no later than the database does.
    if (listener === client) trustedUntil = asked + LEASE
  }

  const listen = async (): Promise<pg.Client> => {
    const client = new GuardedClient({
      ...systemSession(options.url),
      application_name: 'gatehouse listener',
      connectionTimeoutMillis: 5_000,
      deadline: LEASE,
    })
    client.on('notification', ({ channel, payload }) => receive(client, channel, payload ?? ''))
    client.on('error', (error) => lose(client, error))
    client.on('end', () => lose(client))
    try {
      await client.connect()
      await client.query(`listen ${CHANNEL}`)
      await client.query(`listen ${ackChannel}`)
      for (const channel of heard.keys()) await client.query(listenTo(client, channel))
      listener = client
      await renew(client)
      for (const { back } of heard.values()) back()
      return client
    } catch (error) {
      drop(client, error)
      throw error
    }
  }

  /** Renews for as long as the connection lives; when it breaks, comes back with a new one. */
  const keepListening = async (first: pg.Client): Promise<void> => {
    let client: pg.Client | undefined = first
    while (!closing.signal.aborted) {
      await sleep(RENEWAL, undefined, { signal: closing.signal }).catch(() => {})
      if (closing.signal.aborted) break
      try {
        if (client === undefined || listener !== client) client = await listen()
        else await renew(client)
      } catch (error) {
        if (client !== undefined) drop(client, error)
        client = undefined
      }
    }
  }

  /** Asks every other live process to say that it is here, and waits for each, at most one lease. */
  const barrier = async (): Promise<void> => {
    const name = String(++barriers)
    const expected = new Set<string>()
    const { promise, resolve } = Promise.withResolvers<void>()
    const early = new Set<string>()
    waiting.set(name, (process) => {
      early.add(process)
      if (expected.delete(process) && expected.size === 0) resolve()
    })
    try {
      const asking = listener ?? pool
      const { rows } = await asking.query<{ id: string }>(
        `select id, pg_notify($2, $3) from service.process_lease where id <> $1 and expires_at > clock_timestamp()`,
        [id, CHANNEL, `barrier ${name} ${ackChannel}`],
      )
      for (const row of rows) if (!early.has(row.id)) expected.add(row.id)
      // Unreferenced: once everybody has answered, a command need not run on until the lease is over.
      if (expected.size > 0) await Promise.race([promise, sleep(LEASE, undefined, { ref: false })])
    } catch {
      // Nobody could be asked: then every lease that ran at the commit has to run out.
      await sleep(LEASE)
    } finally {
      waiting.delete(name)
    }
  }

  // Callers that arrive while a barrier is under way share the next one: theirs must begin after their commit.
  let running: Promise<void> | undefined
  let next: Promise<void> | undefined
  const settle = (): Promise<void> => {
    if (running === undefined) {
      running = barrier().finally(() => {
        running = undefined
      })
      return running
    }
    next ??= running.then(() => {
      next = undefined
      return settle()
    })
    return next
  }

  const announce = async (tags: readonly string[]): Promise<void> => {
    await (listener ?? pool).query('select pg_notify($1, tag) from unnest($2::text[]) as tag', [
      CHANNEL,
      tags,
    ])
    await settle()
  }

  const first = await listen()
  const loop = keepListening(first)

  return {
    isTrusted: () => performance.now() < trustedUntil,
    subscribe: (subscriber) => void subscribers.push(subscriber),
    announce,
    async listen(channel, receive, back) {
      heard.set(channel, { receive, back })
      const client = listener
      // One that comes later listens to it by itself.
      await client?.query(listenTo(client, channel)).catch((error: unknown) => drop(client, error))
      back()
      return async () => void heard.delete(channel)
    },
    async ping() {
      if (listener === undefined) throw new Error('there is no listener')
      await listener.query('select 1')
    },
    settle,
    async close() {
      closing.abort()
      await loop
      trustedUntil = 0
      const client = listener
      listener = undefined
      await client?.query('delete from service.process_lease where id = $1', [id]).catch(() => {})
      await client?.end().catch(() => {})
    },
  }
}
