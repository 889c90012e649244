import pg from 'pg'
import { systemSession } from './session-settings.ts'

type GuardedConfig = pg.ClientConfig & {
  /**
   * Longest silence of the server while a statement runs, or longest idle time in a transaction, milliseconds;
   * then the connection is destroyed. Without it, the owner has to watch the connection.
   */
  readonly deadline?: number
  /** A connection for the replication protocol, which also runs SQL on its database. Not in pg's types. */
  readonly replication?: 'database'
  /** Several callers use the connection. A statement is sent when the one before it is answered; pg's own queue is deprecated. */
  readonly inTurn?: boolean
  /** `false` behind a pooler that does not support prepared statements: names of statements are not sent. */
  readonly prepares?: boolean
}

/** Time for an orderly end, milliseconds: a dead peer does not answer. */
const FAREWELL = 1_000

/** After an alarm, a statement that is unanswered for longer is taken for lost, milliseconds. */
const SUSPICIOUS = 2_000

/**
 * Every connection to PostgreSQL. A lost connection does not end the process, a silent one is destroyed, and keep-alive detects
 * the dead peer of an idle one. The server's own statement_timeout has no effect while the network or the server is down.
 */
export class GuardedClient extends pg.Client {
  readonly #deadline: number
  /** When a statement was sent on an idle connection, or the server last finished one (performance.now()). */
  #since = 0
  #watch: NodeJS.Timeout | undefined
  /** The end of the statement that was asked for last; never rejects. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(config: GuardedConfig) {
    const connectionTimeoutMillis = config.connectionTimeoutMillis ?? 10_000
    super({ ...config, connectionTimeoutMillis, keepAlive: true, keepAliveInitialDelayMillis: 10_000 })
    this.#deadline = config.deadline ?? Number.POSITIVE_INFINITY
    // Never removed: pg-pool removes its own listener from a client that is checked out, and an 'error' without a listener
    // ends the process. Running statements fail by themselves.
    this.on('error', () => this.destroy())
    this.on('end', () => this.#stopWatching())
    const connection = this.connection as unknown as ReadyEmitter
    connection.on('readyForQuery', () => {
      this.#since = performance.now()
    })
    // `query` has six overloads and `end` two, and all arguments are passed on unchanged.
    const send: AnyForm = (asked, ...rest) => {
      this.#asked()
      return (super.query as AnyForm).call(this, config.prepares === false ? unnamed(asked) : asked, ...rest)
    }
    const sendInTurn: AnyForm = (...args) => {
      const answer = this.#last.then(() => send(...args))
      this.#last = answer.catch(() => {})
      return answer
    }
    this.query = (config.inTurn === true ? sendInTurn : send) as pg.Client['query']
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
    // A connection that has ended already, or never began, emits no 'end' and has nothing to destroy.
    const timer = setTimeout(() => this.destroy(), FAREWELL).unref()
    this.once('end', () => clearTimeout(timer))
  }

  /** Whether a statement is unanswered, or a transaction open. */
  isBusy(): boolean {
    return this.#isAsked() || (this.getTransactionStatus() ?? 'I') !== 'I'
  }

  #isAsked(): boolean {
    const { _activeQuery, _queryQueue, _sentQueryQueue } = this as unknown as ClientQueue
    return Boolean(_activeQuery) || _queryQueue.length > 0 || _sentQueryQueue.length > 0
  }

  /** Closes the socket at once; the server notices when it next writes. */
  destroy(): void {
    this.connection.stream.destroy()
  }

  /** The same for an idle connection, which its pool must not hand out before the socket is closed. */
  abandon(): void {
    this.emit('error', new Abandoned())
  }

  /** After an alarm: ends the connection when it is idle, or when a statement has been unanswered for a while. */
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

/** A cursor or a COPY sends itself and has no name. */
const unnamed = (asked: unknown): unknown =>
  typeof asked === 'object' && asked !== null && 'name' in asked ? { ...asked, name: undefined } : asked

/** An idle connection was ended because it may be dead. */
export class Abandoned extends Error {}

type AnyForm = (...args: unknown[]) => unknown

/** Not in pg's types. */
type ClientQueue = {
  readonly _activeQuery: object | null | undefined
  readonly _queryQueue: readonly object[]
  readonly _sentQueryQueue: readonly object[]
}
type ReadyEmitter = { on(event: 'readyForQuery', listener: () => void): void }

type ConnectionOptions = {
  readonly url: string
  /** In pg_stat_activity. */
  readonly name: string
  /** Milliseconds for each statement; ten seconds by default. */
  readonly deadline?: number
}

/** Opens a connection for this work, with the settings of our sessions. */
export async function onConnection<T>(
  { url, name, deadline = 10_000 }: ConnectionOptions,
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
