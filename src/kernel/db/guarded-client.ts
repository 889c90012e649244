import pg from 'pg'
import { systemSession } from './session-settings.ts'

export type GuardedConfig = pg.ClientConfig & {
  /**
   * For how long the server may say nothing while it is asked something, or a transaction may stay open in which nothing is asked;
   * then the connection is destroyed. Milliseconds; without it somebody else has to watch.
   */
  readonly deadline?: number
}

/** For how long a farewell may take, milliseconds: a peer that is gone does not answer one. */
const FAREWELL = 1_000

/** What is unanswered for longer, while others are silent too, is not merely slow; milliseconds. */
const SUSPICIOUS = 2_000

/**
 * Every connection to Postgres: one that is lost never ends the process, one that is silent is destroyed by us, and keep-alive finds
 * a dead peer of one that is idle. The server's own statement_timeout does not hold while the network or the server is away.
 */
export class GuardedClient extends pg.Client {
  readonly #deadline: number
  /** When it was asked while it was idle, or the server last finished a statement (performance.now()). */
  #since = 0
  #watch: NodeJS.Timeout | undefined

  constructor(config: GuardedConfig) {
    const connectionTimeoutMillis = config.connectionTimeoutMillis ?? 10_000
    super({ ...config, connectionTimeoutMillis, keepAlive: true, keepAliveInitialDelayMillis: 10_000 })
    this.#deadline = config.deadline ?? Number.POSITIVE_INFINITY
    // For all of its life: pg-pool takes its own listener away from a client that is checked out, and an 'error' that nobody hears
    // ends the process. What is asked on the connection fails by itself.
    this.on('error', () => this.destroy())
    this.on('end', () => this.#stopWatching())
    const connection = this.connection as unknown as Answering
    connection.on('readyForQuery', () => {
      this.#since = performance.now()
    })
    // pg has six forms of the one and two of the other, and all of them are passed on as they are.
    this.query = ((...args) => {
      this.#asked()
      return (super.query as AnyForm).apply(this, args)
    }) as AnyForm as pg.Client['query']
    this.end = ((...args) => {
      this.#leaving()
      return (super.end as AnyForm).apply(this, args)
    }) as AnyForm as pg.Client['end']
  }

  #asked(): void {
    if (this.#deadline === Number.POSITIVE_INFINITY) return
    if (!this.#isAsked()) this.#since = performance.now()
    this.#watch ??= this.#watchFor(this.#deadline)
  }

  #leaving(): void {
    // Where it is over already, or never began, no 'end' comes, and there is nothing to destroy.
    const timer = setTimeout(() => this.destroy(), FAREWELL).unref()
    this.once('end', () => clearTimeout(timer))
  }

  /** Something is asked that has not been answered, or a transaction is open. */
  isBusy(): boolean {
    return this.#isAsked() || (this.getTransactionStatus() ?? 'I') !== 'I'
  }

  #isAsked(): boolean {
    const { _activeQuery, _queryQueue, _sentQueryQueue } = this as unknown as Asked
    return Boolean(_activeQuery) || _queryQueue.length > 0 || _sentQueryQueue.length > 0
  }

  /** Breaks the connection off at once; the server notices when it next writes. */
  destroy(): void {
    this.connection.stream.destroy()
  }

  /** The same for one that nobody uses, whose owner must not hand it out before the socket has said that it is closed. */
  abandon(): void {
    this.emit('error', new Abandoned())
  }

  /** The network may have forgotten it: it ends when it is idle, or when what it was asked has been unanswered for a while. */
  suspect(): void {
    if (!this.isBusy()) this.abandon()
    else if (performance.now() - this.#since > SUSPICIOUS) this.destroy()
  }

  #watchFor(time: number): NodeJS.Timeout {
    return setTimeout(() => this.#look(), time).unref()
  }

  #look(): void {
    this.#watch = undefined
    if (!this.isBusy()) return
    const left = this.#since + this.#deadline - performance.now()
    if (left > 0) this.#watch = this.#watchFor(left)
    else {
      this.emit('silent')
      this.destroy()
    }
  }

  #stopWatching(): void {
    clearTimeout(this.#watch)
  }
}

/** A connection that was idle, and was ended because it may be dead. */
export class Abandoned extends Error {}

type AnyForm = (...args: unknown[]) => unknown

/** Not in pg's types. */
type Asked = {
  readonly _activeQuery: object | null | undefined
  readonly _queryQueue: readonly object[]
  readonly _sentQueryQueue: readonly object[]
}
type Answering = { on(event: 'readyForQuery', listener: () => void): void }

export type Short = {
  readonly url: string
  /** In pg_stat_activity. */
  readonly name: string
  /** Milliseconds a statement; ten seconds when nothing is said. */
  readonly deadline?: number
}

/** A connection for this work alone, with a session of ours. */
export async function onConnection<T>(
  { url, name, deadline = 10_000 }: Short,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  return connected(
    new GuardedClient({ ...systemSession(url), application_name: `gatehouse ${name}`, deadline }),
    work,
  )
}

export async function connected<T>(
  client: GuardedClient,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  try {
    await client.connect()
    return await work(client)
  } finally {
    await client.end()
  }
}
