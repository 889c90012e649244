import { EventEmitter } from 'node:events'
import pg from 'pg'
import { Pace } from '#databases/drivers/postgres/pace.ts'
import type { RowQuery } from '#databases/drivers/postgres/query.ts'
import { Statements } from '#databases/drivers/postgres/statements.ts'
import { fail } from '#databases/failures.ts'

/**
 * A pg client whose rows do not pass through pg: connecting, authentication, TLS and errors are pg's, but DataRow messages go to
 * the active query as bytes, and the messages that only say "done" are dropped before they are parsed.
 */
export class RowClient extends pg.Client {
  readonly statements = new Statements()
  active: ActiveQuery | undefined
  /** For the pool: when the current statement began or the connection became idle (performance.now()). */
  since = 0
  readonly pace = new Pace()
  /** Of queries that `follow`: the one that is answered now, and those that are written already, in this order. */
  #followed: Sent | undefined
  #following: Sent[] = []
  /** What has been written and waits for the end of the turn. */
  #departure: Departure | undefined
  /** Answers to come belong to nobody: after the active query it is broken off. */
  #isSpent = false
  /** Settings that the server reports by itself, by name. */
  readonly reported: Record<string, string> = {}
  /** Bytes of a message that is not whole yet. */
  #partial = () => 0

  constructor(config: pg.ClientConfig) {
    super(config)
    // The server's last word, or the socket's: pg takes no more queries, and the pool must see that before the socket has closed.
    // Whatever runs hears of it by itself.
    this.on('error', () => this.destroy())
    this.on('end', () => {
      this.active?.settle()
      this.#displaceFollowing()
    })
    // Not in pg's types: called once with the socket, after TLS where there is TLS.
    const connection = this.connection as unknown as Attachable
    connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      this.reported[parameterName] = parameterValue
    })
    connection.on('parameterDescription', ({ dataTypeIDs }) => this.active?.describe?.(dataTypeIDs))
    const attach = connection.attachListeners
    connection.attachListeners = (stream) => {
      const rest = new EventEmitter()
      const join = joiner()
      attach.call(connection, rest)
      this.#partial = join.held
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
  holdBack(): void {
    if (this.active?.isFull === true) this.connection.stream.pause()
  }

  /** The rows of the active query have been taken. */
  flow(): void {
    this.connection.stream.resume()
  }

  /**
   * Sends a query behind those that are under way instead of waiting for their answers (protocol-flow, "Pipelining"). What is
   * written within one turn of the event loop goes out together.
   */
  follow(query: RowQuery): void {
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
    if (this.#followed !== undefined) this.pace.answered(this.#followed.departure.at, performance.now())
    this.#followed = undefined
    const next = this.#following.shift()
    if (this.#isSpent) this.destroy()
    else if (next !== undefined) this.#begin(next)
  }

  /** Those behind the active query go elsewhere, when it has kept them waiting for so long (milliseconds). True when it has. */
  unburden(patience: number): boolean {
    if (this.#followed === undefined || this.#following.length === 0) return false
    if (performance.now() - this.pace.begun(this.#followed.departure.at) < patience) return false
    this.#isSpent = true
    this.#displaceFollowing()
    return true
  }

  #displaceFollowing(): void {
    for (const { query } of this.#following.splice(0)) query.displace()
  }

  /** A statement runs, on the planned path or one of pg's own. */
  isBusy(): boolean {
    // Not in pg's types.
    const { readyForQuery } = this as unknown as { readonly readyForQuery: boolean }
    return this.active !== undefined || !readyForQuery
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

  /** Breaks the connection off at once; the server notices when it next writes. */
  destroy(): void {
    this.connection.stream.destroy()
  }
}

type Sent = { readonly query: RowQuery; readonly departure: Departure }
/** When a turn's bytes went out (performance.now()); infinite before. */
type Departure = { at: number }

/** What the connection hands the server's answer to. */
type ActiveQuery = Pick<RowQuery, 'row' | 'settle' | 'refuse'> & {
  parsed: boolean
  /** It holds as many rows as it may: the socket is to wait until they are taken. */
  readonly isFull: boolean
  /** The server tells the types of the parameters. */
  describe?(types: readonly number[]): void
}

type Attachable = {
  attachListeners: (stream: EventEmitter) => void
  on(
    event: 'parameterStatus',
    listener: (message: { parameterName: string; parameterValue: string }) => void,
  ): void
  on(event: 'parameterDescription', listener: (message: { dataTypeIDs: readonly number[] }) => void): void
}

/** A row above this is refused: it would be held in memory whole, and a relation can gather a table into one row. */
const largestMessage = 67_108_864

const tooLarge = () =>
  fail('result_too_large', {
    message: 'A row is larger than 64 MB',
    hint: 'Ask for fewer columns, or read the relation by itself.',
  })

const codes = { parsed: 0x31, bound: 0x32, closed: 0x33, row: 0x44, ready: 0x5a } as const

/** Cuts the stream into messages: rows to the active query, the rest to `pass`. What cannot be read ends the connection. */
function frames(client: RowClient, join: Joiner, pass: (bytes: Buffer) => void): (chunk: Buffer) => void {
  const read = (chunk: Buffer) => {
    if (join.needed() > largestMessage) return client.active?.refuse(tooLarge())
    const data = join.add(chunk)
    if (data === undefined) return
    let at = 0
    let passed = 0
    while (at + 5 <= data.length) {
      const end = at + 1 + data.readUInt32BE(at + 1)
      if (end > data.length) break
      const code = data[at]
      const query = client.active
      if (
        query !== undefined &&
        (code === codes.row || code === codes.parsed || code === codes.bound || code === codes.closed)
      ) {
        if (passed < at) pass(data.subarray(passed, at))
        passed = end
        if (code === codes.row) query.row(data, at + 7, end, data.length - at)
        else if (code === codes.parsed) query.parsed = true
      }
      at = end
      if (code === codes.ready && query !== undefined) {
        pass(data.subarray(passed, at))
        passed = end
        query.settle()
        client.advance()
      }
    }
    if (passed < at) pass(data.subarray(passed, at))
    join.keep(data, at)
  }
  return (chunk) => {
    try {
      read(chunk)
      client.holdBack()
    } catch (error) {
      client.active?.refuse(fail('connection_lost', { cause: error }))
      client.destroy()
    }
  }
}

type Joiner = {
  /** Bytes of a message whose end has not come. */
  held(): number
  /** Bytes of the message that is not whole yet. */
  needed(): number
  add(chunk: Buffer): Buffer | undefined
  keep(data: Buffer, from: number): void
}

/** Puts chunks together until the message at their front is whole; a row of a hundred megabytes is joined once, not 1,500 times. */
function joiner(): Joiner {
  let parts: Buffer[] = []
  let held = 0
  let needed = 0
  return {
    held: () => held,
    needed: () => (held === 0 ? 0 : needed),
    add(chunk) {
      if (held === 0) return chunk
      parts.push(chunk)
      held += chunk.length
      if (held < needed) return undefined
      const joined = Buffer.concat(parts, held)
      parts = []
      held = 0
      return joined
    },
    keep(data, from) {
      held = data.length - from
      if (held === 0) return
      parts = [data.subarray(from)]
      needed = held < 5 ? 5 : 1 + data.readUInt32BE(from + 1)
    },
  }
}
