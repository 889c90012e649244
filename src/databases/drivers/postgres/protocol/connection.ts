import { EventEmitter } from 'node:events'
import type pg from 'pg'
import type { Presence } from '#databases/drivers/driver.ts'
import type { ActiveQuery, PipelinedQuery } from '#databases/drivers/postgres/protocol/active-query.ts'
import { AdaptiveDepth } from '#databases/drivers/postgres/protocol/adaptive-depth.ts'
import { cancel, keysOf } from '#databases/drivers/postgres/protocol/cancel.ts'
import { createFrameReader, createJoiner } from '#databases/drivers/postgres/protocol/frames.ts'
import { PreparedStatements } from '#databases/drivers/postgres/protocol/prepared-statements.ts'
import { GuardedClient } from '#kernel/db/guarded-client.ts'

/**
 * A pg client whose rows bypass pg: pg handles connecting, authentication, TLS and errors, but DataRow messages go to the active query as
 * bytes, and messages that only confirm a step are dropped before they are parsed.
 */
export class RowClient extends GuardedClient {
  readonly statements = new PreparedStatements()
  /** Set for a connection through a pooler; undefined: the session belongs to this connection. */
  pooled: Pooler | undefined
  active: ActiveQuery | undefined
  /** For the pool: when the current statement began or the connection became idle (performance.now()). */
  since = 0
  /** The caller that has the connection; undefined while several share it or the service uses it. */
  presence: Presence | undefined
  /** User-defined functions have run on it and may have left settings, locks or temporary tables. */
  mayBeDirty = false
  /** A function of the client was prepared for a column that has another type now. The server keeps it until the session ends. */
  hasStaleFunction = false
  /** Since when the socket is paused for a slow reader (performance.now()). */
  pausedSince: number | undefined
  /** When cancelling was requested. */
  #stoppedAt: number | undefined
  /** A cancel request is on the way. */
  #isCancelling = false
  readonly depth = new AdaptiveDepth()
  /** Pipelined queries: the one that is being answered, and those already written, in order. */
  #current: Sent | undefined
  #queued: Sent[] = []
  /** Written queries that leave at the end of this turn of the event loop. */
  #departure: Departure | undefined
  /** Displaced statements are still on the way to the server. */
  #hasDisplaced = false
  /** Later answers have no reader: the connection is closed after the active query. */
  #isClosing = false
  /** Settings that the server reports (ParameterStatus), by name. */
  readonly reported: Record<string, string> = {}
  readonly #atStart: Record<string, string> = {}
  /** Bytes of an incomplete message. */
  #partial = () => 0

  constructor(config: pg.ClientConfig) {
    super(config)
    this.on('end', () => {
      this.active?.settle()
      this.#displaceQueued()
    })
    // Missing in pg's types: called once with the socket, after TLS if there is TLS.
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
        createFrameReader(this, join, (bytes) => rest.emit('data', bytes)),
      )
    }
  }

  /**
   * Pauses the socket when the active query is full; nothing else pauses it. Called after each chunk, so that only a running statement can
   * pause: after the end of a statement the socket must flow for the next one.
   */
  pauseWhenFull(): void {
    if (this.active?.isFull !== true) return
    this.connection.stream.pause()
    this.pausedSince ??= performance.now()
  }

  /** Resumes the socket when the rows of the active query have been taken. */
  flow(): void {
    // The reader's time does not count as the statement's.
    if (this.pausedSince !== undefined) this.since = performance.now()
    this.pausedSince = undefined
    this.connection.stream.resume()
  }

  /**
   * Sends a query without waiting for the answers of earlier ones (protocol-flow, "Pipelining"). Queries of one turn of the event loop
   * leave together.
   */
  sendPipelined(query: PipelinedQuery): void {
    if (!this.acceptsQueries()) {
      query.displace()
      return
    }
    const departure = this.#depart()
    query.send()
    const sent = { query, departure }
    if (this.active !== undefined) this.#queued.push(sent)
    else this.#begin(sent)
  }

  acceptsQueries(): boolean {
    return !this.#isClosing && !this.hasStaleFunction && this.isAlive()
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
    this.#current = sent
    this.since = performance.now()
    this.query(sent.query)
  }

  /** Continues with the next pipelined query. */
  advance(): void {
    if (this.#current !== undefined) this.depth.answered(this.#current.departure.at, performance.now())
    this.#current = undefined
    const next = this.#queued.shift()
    if (this.#isClosing) this.destroy()
    else if (next !== undefined) this.#begin(next)
  }

  /** Displaces the queries after the active one when it has delayed them for `patience` milliseconds. True if it did. */
  displaceDelayed(patience: number): boolean {
    if (this.#current === undefined || this.#queued.length === 0) return false
    if (performance.now() - this.depth.begun(this.#current.departure.at) < patience) return false
    this.#isClosing = true
    this.#hasDisplaced = true
    this.#displaceQueued()
    return true
  }

  /** Whether the callers of the running query have left, also on a shared connection with one remaining query. */
  isLeft(): boolean {
    if (this.#current === undefined) return this.presence?.hasLeft() === true
    return this.#queued.length === 0 && this.#current.query.presence?.hasLeft() === true
  }

  #displaceQueued(): void {
    for (const { query } of this.#queued.splice(0)) query.displace()
  }

  /** Whether a statement runs, of a plan or of pg itself. */
  override isBusy(): boolean {
    // Missing in pg's types.
    const { readyForQuery } = this as unknown as { readonly readyForQuery: boolean }
    return this.active !== undefined || !readyForQuery
  }

  /** Whether a setting that values, names or writes depend on has changed since the start, by whatever cause. */
  hasChangedSettings(): boolean {
    return SETTLED.some((name) => this.reported[name] !== this.#atStart[name])
  }

  /** Whether any caller can use it next: nothing runs, nothing is unread, no transaction is open, and the socket is alive and flows. */
  isClean(): boolean {
    return !this.isBusy() && this.getTransactionStatus() === 'I' && this.acceptsQueries() && this.#isDrained()
  }

  #isDrained(): boolean {
    const { stream } = this.connection
    return !stream.isPaused() && stream.readableLength === 0 && this.#partial() === 0
  }

  isAlive(): boolean {
    return !this.connection.stream.destroyed && this.connection.stream.writable
  }

  /**
   * Cancels the running statement and waits for the server's answer, since a write may have completed first. Then the connection is closed,
   * because the cancel request could hit another statement. Call it repeatedly until it has ended.
   */
  stop({ grace, terminate }: { readonly grace: number; readonly terminate: Terminate }): void {
    if (this.#stoppedAt !== undefined) {
      if (performance.now() - this.#stoppedAt > grace) this.destroy()
      return
    }
    this.#stoppedAt = performance.now()
    this.#isClosing = true
    // A server that is blocked in sending does not process a cancel request.
    if (this.pausedSince !== undefined) this.breakOff()
    // The server would continue with the next statement.
    else if (this.#hasDisplaced) {
      // A pooler's process id is not the server's. The pooler ends the session when its client is gone.
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
   * The statement was cancelled. The connection can be used again only if the cancel request has arrived: the statement may have timed out
   * instead, and a request on the way could hit the next one.
   */
  cancelled(): void {
    if (this.#stoppedAt === undefined || this.#hasDisplaced || this.#isCancelling) return
    this.#stoppedAt = undefined
    this.#isClosing = false
  }

  /** Closes the connection because the rest of the answer is not needed. */
  breakOff(): void {
    cancel(this)
    this.destroy()
  }
}

/** Settings that the server reports when they change, some only from version 14 or 18. */
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
 * A connection through a pooler (PgBouncer in transaction mode): each transaction may run in another session, which others use next. So
 * every transaction sets the session's settings itself and leaves nothing.
 */
export type Pooler = {
  /** Expressions for a SELECT that sets them until the end of the transaction. */
  readonly settings: string
  /** The pooler supports prepared statements (PgBouncer from 1.21, with max_prepared_statements). */
  readonly prepares: boolean
}

type Sent = { readonly query: PipelinedQuery; readonly departure: Departure }
/** When the bytes of a turn were sent (performance.now()); infinite before. */
type Departure = { at: number }

/** Terminates a backend by its process id. */
export type Terminate = (processId: number) => void

type Attachable = {
  attachListeners: (stream: EventEmitter) => void
  on(
    event: 'parameterStatus',
    listener: (message: { parameterName: string; parameterValue: string }) => void,
  ): void
  on(event: 'parameterDescription', listener: (message: { dataTypeIDs: readonly number[] }) => void): void
}
