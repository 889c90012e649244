import { EventEmitter } from 'node:events'
import type pg from 'pg'
import type { Presence } from '#databases/drivers/driver.ts'
import type { ActiveQuery, PipelinedQuery } from '#databases/drivers/postgres/protocol/active-query.ts'
import { AdaptiveDepth } from '#databases/drivers/postgres/protocol/adaptive-depth.ts'
import { cancel, keysOf } from '#databases/drivers/postgres/protocol/cancel.ts'
import { createJoiner, frames } from '#databases/drivers/postgres/protocol/frames.ts'
import { PreparedStatements } from '#databases/drivers/postgres/protocol/prepared-statements.ts'
import { GuardedClient } from '#kernel/db/guarded-client.ts'

/**
 * A pg client whose rows do not pass through pg: connecting, authentication, TLS and errors are pg's, but DataRow messages go to
 * the active query as bytes, and the messages that only say "done" are dropped before they are parsed.
 */
export class RowClient extends GuardedClient {
  readonly statements = new PreparedStatements()
  /** There is a pooler between; undefined: the session is ours alone. */
  pooled: Pooled | undefined
  active: ActiveQuery | undefined
  /** For the pool: when the current statement began or the connection became idle (performance.now()). */
  since = 0
  /** Who has the connection; undefined while several share it, and where the service itself has it. */
  presence: Presence | undefined
  /** Functions of users have run on it, and may have left settings, locks or temporary tables. */
  mayBeMarked = false
  /** The socket waits for the reader of the answer since then (performance.now()). */
  pausedSince: number | undefined
  /** The server was asked to cancel then. */
  #stoppedAt: number | undefined
  /** Its request to cancel is on the way. */
  #isCancelling = false
  readonly depth = new AdaptiveDepth()
  /** Of queries that `follow`: the one that is answered now, and those that are written already, in this order. */
  #followed: Sent | undefined
  #following: Sent[] = []
  /** What has been written and waits for the end of the turn. */
  #departure: Departure | undefined
  /** Statements that were displaced are still under way to the server. */
  #hasDisplaced = false
  /** Answers to come belong to nobody: after the active query it is broken off. */
  #isSpent = false
  /** Settings that the server reports by itself, by name. */
  readonly reported: Record<string, string> = {}
  readonly #atStart: Record<string, string> = {}
  /** Bytes of a message that is not whole yet. */
  #partial = () => 0

  constructor(config: pg.ClientConfig) {
    super(config)
    this.on('end', () => {
      this.active?.settle()
      this.#displaceFollowing()
    })
    // Not in pg's types: called once with the socket, after TLS where there is TLS.
    const connection = this.connection as unknown as Attachable
    connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      this.reported[parameterName] = parameterValue
      this.#atStart[parameterName] ??= parameterValue
    })
    connection.on('parameterDescription', ({ dataTypeIDs }) => this.active?.describe?.(dataTypeIDs))
    const attach = connection.attachListeners
    connection.attachListeners = (stream) => {
      const rest = new EventEmitter()
      const join = createJoiner()
      attach.call(connection, rest)
      this.#partial = join.buffered
      stream.on(
        'data',
        frames(this, join, (bytes) => rest.emit('data', bytes)),
      )
    }
  }

  /**
   * The only place that pauses the socket. It runs after each chunk, and only a statement that is still running can pause it: one
   * that ended in the chunk, or the next one, must find the socket flowing.
   */
  pauseWhenFull(): void {
    if (this.active?.isFull !== true) return
    this.connection.stream.pause()
    this.pausedSince ??= performance.now()
  }

  /** The rows of the active query have been taken. */
  flow(): void {
    // The time that a reader takes is not the statement's.
    if (this.pausedSince !== undefined) this.since = performance.now()
    this.pausedSince = undefined
    this.connection.stream.resume()
  }

  /**
   * Sends a query behind those that are under way instead of waiting for their answers (protocol-flow, "Pipelining"). What is
   * written within one turn of the event loop goes out together.
   */
  follow(query: PipelinedQuery): void {
    if (!this.takesMore()) {
      query.displace()
      return
    }
    const departure = this.#depart()
    query.send()
    const sent = { query, departure }
    if (this.active !== undefined) this.#following.push(sent)
    else this.#begin(sent)
  }

  takesMore(): boolean {
    return !this.#isSpent && this.isAlive()
  }

  #depart(): Departure {
    if (this.#departure !== undefined) return this.#departure
    const departure = { at: Number.POSITIVE_INFINITY }
    const { stream } = this.connection
    stream.cork()
    setImmediate(() => {
      departure.at = performance.now()
      this.#departure = undefined
      stream.uncork()
    })
    this.#departure = departure
    return departure
  }

  #begin(sent: Sent): void {
    this.#followed = sent
    this.since = performance.now()
    this.query(sent.query)
  }

  /** The active query has been answered. */
  advance(): void {
    if (this.#followed !== undefined) this.depth.answered(this.#followed.departure.at, performance.now())
    this.#followed = undefined
    const next = this.#following.shift()
    if (this.#isSpent) this.destroy()
    else if (next !== undefined) this.#begin(next)
  }

  /** Those behind the active query go elsewhere, when it has kept them waiting for so long (milliseconds). True when it has. */
  unburden(patience: number): boolean {
    if (this.#followed === undefined || this.#following.length === 0) return false
    if (performance.now() - this.depth.begun(this.#followed.departure.at) < patience) return false
    this.#isSpent = true
    this.#hasDisplaced = true
    this.#displaceFollowing()
    return true
  }

  /** Those who wait for what runs have left: also the one who has shared the connection with others, and is alone by now. */
  isLeft(): boolean {
    if (this.#followed === undefined) return this.presence?.hasLeft() === true
    return this.#following.length === 0 && this.#followed.query.presence?.hasLeft() === true
  }

  #displaceFollowing(): void {
    for (const { query } of this.#following.splice(0)) query.displace()
  }

  /** A statement runs, on the planned path or one of pg's own. */
  override isBusy(): boolean {
    // Not in pg's types.
    const { readyForQuery } = this as unknown as { readonly readyForQuery: boolean }
    return this.active !== undefined || !readyForQuery
  }

  /** A setting that values, names or writes depend on is another than at the start: also where no catalogue has told of a function. */
  hasDrifted(): boolean {
    return SETTLED.some((name) => this.reported[name] !== this.#atStart[name])
  }

  /** Nothing runs or is left to be read, no transaction is open, and the socket is alive and flows: it can serve anyone next. */
  isClean(): boolean {
    return !this.isBusy() && this.getTransactionStatus() === 'I' && this.takesMore() && this.#isDrained()
  }

  #isDrained(): boolean {
    const { stream } = this.connection
    return !stream.isPaused() && stream.readableLength === 0 && this.#partial() === 0
  }

  isAlive(): boolean {
    return !this.connection.stream.destroyed && this.connection.stream.writable
  }

  /**
   * What runs is to end. The server's verdict is waited for, since a write may have been quicker; then the connection ends as well,
   * because the cancelling could meet another statement. To be called again until it has ended.
   */
  stop({ grace, terminate }: { readonly grace: number; readonly terminate: Terminate }): void {
    if (this.#stoppedAt !== undefined) {
      if (performance.now() - this.#stoppedAt > grace) this.destroy()
      return
    }
    this.#stoppedAt = performance.now()
    this.#isSpent = true
    // A server that waits for its reader does not hear of a cancelling.
    if (this.pausedSince !== undefined) this.breakOff()
    // The server would go on with the next one.
    else if (this.#hasDisplaced) {
      // A pooler's process id is none of the server's; it ends the session of a client that is gone.
      if (this.pooled === undefined) terminate(keysOf(this).processID)
      this.destroy()
    } else {
      this.#isCancelling = true
      cancel(this, () => {
        this.#isCancelling = false
      })
    }
  }

  /**
   * The statement that was to be cancelled has been. By that request only when the server has heard it: its own time may have been over
   * just then, and what is still on the way would meet the next statement.
   */
  cancelled(): void {
    if (this.#stoppedAt === undefined || this.#hasDisplaced || this.#isCancelling) return
    this.#stoppedAt = undefined
    this.#isSpent = false
  }

  /** Nobody wants what still comes. */
  breakOff(): void {
    cancel(this)
    this.destroy()
  }
}

/** Those that the server reports when they change; some only from version 14 or 18 on. */
const SETTLED = [
  'TimeZone',
  'DateStyle',
  'IntervalStyle',
  'client_encoding',
  'standard_conforming_strings',
  'default_transaction_read_only',
  'search_path',
] as const

/**
 * A connection through a pooler (PgBouncer in transaction mode): each transaction may have another session of the server, which
 * others have next. So every transaction sets for itself what a session of our own has from its start, and leaves nothing.
 */
export type Pooled = {
  /** Expressions that set it until the end of the transaction, for a SELECT. */
  readonly settings: string
  /** The pooler keeps prepared statements apart (PgBouncer from 1.21 on, with max_prepared_statements). */
  readonly prepares: boolean
}

type Sent = { readonly query: PipelinedQuery; readonly departure: Departure }
/** When a turn's bytes went out (performance.now()); infinite before. */
type Departure = { at: number }

/** Ends a backend by its process id, whatever it does. */
export type Terminate = (processId: number) => void

type Attachable = {
  attachListeners: (stream: EventEmitter) => void
  on(
    event: 'parameterStatus',
    listener: (message: { parameterName: string; parameterValue: string }) => void,
  ): void
  on(event: 'parameterDescription', listener: (message: { dataTypeIDs: readonly number[] }) => void): void
}
