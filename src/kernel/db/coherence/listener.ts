import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { DATABASE_TIME, type DatabaseClock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import { GuardedClient } from '../guarded-client.ts'
import { systemSession } from '../session-settings.ts'

/** How long a process may believe its caches without an answer from the database, milliseconds. */
export const LEASE = 3_000
const RENEWAL = LEASE / 3

type ListenerOptions = {
  readonly url: string
  /** The process, in `process_lease`. */
  readonly id: string
  readonly log: Log
  readonly channels: readonly string[]
  readonly onNotification: (client: pg.Client, channel: string, payload: string) => void
  /** Notifications may have been missed. */
  readonly onLoss: () => void
  /** The connection is there again, also for the first time. */
  readonly onReturn: (client: pg.Client) => Promise<void>
  /** Receives the database's time with each renewal of the lease. */
  readonly onTime: DatabaseClock['learn']
}

/** A channel of another component, such as the job queue's. */
type OtherChannel = {
  receive(payload: string): void
  /** The connection is back; what was sent meanwhile is lost. */
  back(): void
}

/**
 * The one connection of a process that listens, and the lease that it renews: lost, it comes back by itself. A renewal is answered on
 * the connection that listens, so every notification committed before it has arrived by then.
 */
export class Listener {
  readonly #options: ListenerOptions
  readonly #others = new Map<string, OtherChannel>()
  readonly #closing = new AbortController()
  #client: pg.Client | undefined
  #trustedUntil = 0
  #loop: Promise<void> | undefined

  constructor(options: ListenerOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    this.#loop = this.#keepRenewing(await this.#connect())
  }

  /** The connection; undefined while it is lost. */
  get client(): pg.Client | undefined {
    return this.#client
  }

  /** Whether the lease runs. */
  isTrusted(): boolean {
    return performance.now() < this.#trustedUntil
  }

  /** Returns the function that stops listening to the channel. */
  async listen(channel: string, other: OtherChannel): Promise<() => Promise<void>> {
    this.#others.set(channel, other)
    const client = this.#client
    // A connection that is made later listens to the channel by itself.
    await client?.query(listenTo(client, channel)).catch((error: unknown) => this.#drop(client, error))
    other.back()
    return async () => void this.#others.delete(channel)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#loop
    this.#trustedUntil = 0
    const client = this.#client
    this.#client = undefined
    await client?.query('delete from service.process_lease where id = $1', [this.#options.id]).catch(() => {})
    await client?.end().catch(() => {})
  }

  async #connect(): Promise<pg.Client> {
    const { url, channels } = this.#options
    const client = new GuardedClient({
      ...systemSession(url),
      application_name: 'gatehouse listener',
      connectionTimeoutMillis: 5_000,
      deadline: LEASE,
      inTurn: true,
    })
    client.on('notification', ({ channel, payload }) => this.#receive(client, channel, payload ?? ''))
    client.on('error', (error) => this.#lose(client, error))
    client.on('end', () => this.#lose(client))
    try {
      await client.connect()
      for (const channel of [...channels, ...this.#others.keys()])
        await client.query(listenTo(client, channel))
      this.#client = client
      await this.#renew(client)
      await this.#options.onReturn(client)
      for (const { back } of this.#others.values()) back()
      return client
    } catch (error) {
      this.#drop(client, error)
      throw error
    }
  }

  async #renew(client: pg.Client): Promise<void> {
    const { id, onTime } = this.#options
    const asked = performance.now()
    const { rows } = await client.query<{ now: number }>(
      `insert into service.process_lease (id, expires_at) values ($1, clock_timestamp() + $2 * interval '1 millisecond')
       on conflict (id) do update set expires_at = excluded.expires_at returning ${DATABASE_TIME} as now`,
      [id, LEASE],
    )
    onTime(asked, rows[0]?.now ?? Number.NaN, performance.now())
    // Counted from before the statement, so the lease ends here no later than in the database.
    if (this.#client === client) this.#trustedUntil = asked + LEASE
  }

  /** Renews the lease while the connection lives, and connects again when it is lost. */
  async #keepRenewing(first: pg.Client): Promise<void> {
    let client: pg.Client | undefined = first
    const { signal } = this.#closing
    while (!signal.aborted) {
      await sleep(RENEWAL, undefined, { signal }).catch(() => {})
      if (signal.aborted) break
      try {
        if (client === undefined || this.#client !== client) client = await this.#connect()
        else await this.#renew(client)
      } catch (error) {
        if (client !== undefined) this.#drop(client, error)
        client = undefined
      }
    }
  }

  #receive(client: pg.Client, channel: string, payload: string): void {
    const other = this.#others.get(channel)
    if (other === undefined) this.#options.onNotification(client, channel, payload)
    else other.receive(payload)
  }

  #lose(client: pg.Client, error?: Error): void {
    if (this.#client !== client) return
    this.#client = undefined
    this.#trustedUntil = 0
    this.#options.onLoss()
    if (!this.#closing.signal.aborted)
      this.#options.log.warn(
        { event: 'listener_lost', error },
        'caches are bypassed until the listener is back',
      )
  }

  #drop(client: pg.Client, error: unknown): void {
    this.#lose(client, error instanceof Error ? error : undefined)
    client.end().catch(() => {})
  }
}

const listenTo = (client: pg.Client, channel: string): string => `listen ${client.escapeIdentifier(channel)}`
