import type { Presence } from '#databases/drivers/driver.ts'
import type { MemoryBudget } from '#databases/drivers/memory-budget.ts'
import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import type { CachedStatement } from '#databases/drivers/postgres/protocol/prepared-statements.ts'
import {
  codeOf,
  Displaced,
  isOfStaleFunction,
  STALE_CODES,
} from '#databases/drivers/postgres/protocol/query-errors.ts'
import { columnWriter, RowWriter, reusable } from '#databases/drivers/postgres/protocol/rows.ts'
import type {
  FirstStatement,
  RunOptions,
  Statement,
} from '#databases/drivers/postgres/protocol/run-options.ts'
import { encodeRun, SYNC_MESSAGE } from '#databases/drivers/postgres/protocol/wire.ts'
import { answerTooLarge, readerTooSlow, tooManyRelated } from '#databases/drivers/result-limits.ts'

/**
 * One statement on one connection, as a `Submittable` of pg. States: sent → collecting → (flowing ⇄ full) → ended | failed.
 * `ready` settles when the rows are all here or the high-water mark is reached. The connection pauses while a query is full.
 */
export class RowQuery {
  readonly ready: Promise<void>
  writer: RowWriter | undefined
  affected = 0
  /** The server has parsed the text, so the prepared statement exists. */
  parsed = false
  done = false
  failure: Error | undefined
  /** Called when its connection is free; rows may still be buffered. */
  whenOver: (() => void) | undefined
  /** pg reads these; empty, so that pg does not track prepared statements. */
  readonly name = ''
  readonly text = ''
  callback = (): void => {}
  readonly #client: RowClient
  readonly #statement: Statement
  readonly #options: RunOptions
  readonly #ready = Promise.withResolvers<void>()
  #prepared: CachedStatement | undefined
  #isKnown = false
  /** The preceding statement has not succeeded yet. */
  #isWaiting = false
  #isComplete = false
  #isSynced = false
  #wake: (() => void) | undefined
  #budget: MemoryBudget | undefined

  constructor(client: RowClient, statement: Statement, options: RunOptions) {
    this.#client = client
    this.#statement = statement
    this.#options = options
    this.ready = this.#ready.promise
    // A streaming reader gets the failure with the rows, so the rejected promise must not count as unhandled.
    this.ready.catch(() => {})
  }

  /** Called by pg when the query becomes active. */
  submit(): void {
    this.#client.active = this
    if (this.#prepared === undefined) this.send()
  }

  /** Writes the query to the connection, in `submit` or earlier as a pipelined query (`RowClient.sendPipelined`). */
  send(): void {
    const { text, values } = this.#statement
    const { name, first } = this.#options
    const { statements } = this.#client
    const known = name === '' ? undefined : statements.find(name, text)
    this.#prepared = known ?? { text, types: undefined, writers: undefined }
    this.#isKnown = known !== undefined
    this.parsed = this.#isKnown
    if (!known && name !== '') statements.add(name, this.#prepared)
    if (known?.types) this.#begin(known.types)
    const parse = known ? undefined : text
    const before = first && this.#begins(first)
    this.#client.connection.stream.write(
      encodeRun({
        name,
        parse,
        first: before,
        close: statements.takeClosing(),
        describe: !known?.types,
        isOpen: this.#options.commitsLast === true,
        values,
      }),
    )
  }

  /** The rows of the preceding statement are ignored. */
  #begins({ name, text, values }: FirstStatement) {
    const { statements } = this.#client
    this.#isWaiting = true
    const isKnown = name !== '' && statements.find(name, text) !== undefined
    if (!isKnown && name !== '') statements.add(name, { text, types: undefined, writers: undefined })
    return { name, parse: isKnown ? undefined : text, values }
  }

  /** The preceding statement failed: the role could not be set, and the statement itself was not run. */
  get failedFirst(): boolean {
    return this.#isWaiting && this.failure !== undefined
  }

  handleRowDescription(message: { fields: readonly { name: string; dataTypeID: number }[] }): void {
    const types = message.fields.map((field) => field.dataTypeID)
    if (this.#prepared) this.#prepared.types = types
    this.#begin(types, message.fields)
  }

  #begin(types: readonly number[], fields?: readonly { name: string }[]): void {
    const { members, relations } = this.#options
    // The check of a public route is after the members.
    const shown = types.slice(0, members?.length)
    const writers =
      reusable(this.#prepared?.writers, members) ??
      shown.map((type, index) =>
        columnWriter(members?.[index] ?? fields?.[index]?.name ?? '', type, relations?.at.has(index)),
      )
    if (this.#prepared) this.#prepared.writers = writers
    this.writer = new RowWriter(writers, this.#options)
  }

  row(data: Buffer, from: number, end: number, ahead: number): void {
    const { writer } = this
    if (writer === undefined || this.#isWaiting) return
    const { maxBytes, commitsLast, relations } = this.#options
    const before = writer.related
    writer.row(data, from, end, ahead)
    const rows = relations?.perRow ? writer.related - before : writer.rows + writer.related
    if (relations !== undefined && rows > relations.rows) this.refuse(tooManyRelated(relations.rows))
    if (this.#budget?.reserve(writer.waiting) === false) this.refuse(readerTooSlow())
    if (maxBytes !== undefined && writer.waiting > maxBytes)
      this.refuse(answerTooLarge(maxBytes, commitsLast ? NOTHING_WRITTEN : undefined))
    if (writer.waiting < this.#options.highWater) return
    this.#ready.resolve()
    this.#notify()
  }

  /** Whether as many bytes are buffered as allowed. */
  get isFull(): boolean {
    if (this.writer === undefined || this.#budget !== undefined) return false
    return this.writer.waiting >= this.#options.highWater
  }

  get isLong(): boolean {
    return this.#options.isLong === true
  }

  get presence(): Presence | undefined {
    return this.#options.presence
  }

  readAhead(budget: MemoryBudget): void {
    this.#budget = budget
    this.#client.flow()
  }

  /** `INSERT 0 5`, `SELECT 3`: the last word is the number of rows. */
  handleCommandComplete(message: { text: string }): void {
    if (this.#isWaiting) {
      this.#firstSucceeded()
      return
    }
    this.#isComplete = true
    this.#sync()
    this.affected = Number(/\d+$/.exec(message.text)?.[0] ?? 0)
  }

  /** Once only: the answer to a second Sync would be taken as the next statement's. */
  #sync(): void {
    if (!this.#options.commitsLast || this.#isSynced) return
    this.#isSynced = true
    this.#client.connection.stream.write(SYNC_MESSAGE)
  }

  /** Later messages concern the statement itself, also the confirmation of Parse. */
  #firstSucceeded(): void {
    this.#isWaiting = false
    this.parsed = this.#isKnown
  }

  /** `settle` follows and does everything, also in cases that pg does not report to the query. */
  handleReadyForQuery(): void {}

  /** An error of the server takes effect when the connection is ready again; on a lost connection, at once. */
  handleError(error: Error): void {
    if (isOfStaleFunction(error)) this.#client.hasStaleFunction = true
    this.failure ??= error
    if (!this.#client.isAlive()) this.settle()
    else this.#sync()
  }

  /** Must run on another connection, through no fault of its own; later messages are ignored. */
  displace(): void {
    this.failure ??= new Displaced()
    this.settle()
  }

  /** Ends the statement and its connection with a failure of the gateway. */
  refuse(failure: Error): void {
    this.failure ??= failure
    this.#client.destroy()
  }

  /** The rest of the rows is not needed: closing the connection ends the statement sooner than reading on. */
  abandon(): void {
    this.#client.breakOff()
  }

  /** Called when the connection is free again or lost. */
  settle(): void {
    if (this.done) return
    this.done = true
    if (this.#client.active === this) this.#client.active = undefined
    if (!this.failure && !this.#client.isAlive()) this.failure = new Error('Connection terminated')
    // The messages of the next statement would be taken as the rest of this one.
    if (!this.failure && !this.#isComplete)
      this.refuse(new Error('Connection terminated in the middle of an answer'))
    if (this.failure) this.#fail(this.failure)
    else {
      this.writer?.finish()
      this.#ready.resolve()
    }
    this.#notify()
    // After the chunk with the end of the statement.
    if (this.whenOver !== undefined) queueMicrotask(this.whenOver)
  }

  #fail(failure: Error): void {
    const { name, first } = this.#options
    if (codeOf(failure) === QUERY_CANCELED) this.#client.cancelled()
    if (this.#isWaiting && first) {
      this.#client.statements.drop(first.name)
      this.parsed = this.#isKnown
    }
    // A text that the server has not accepted, or no longer accepts, must be parsed again.
    if (name !== '' && (!this.parsed || STALE_CODES.has(codeOf(failure)))) this.#client.statements.drop(name)
    this.#ready.reject(failure)
  }

  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
  handleCopyData(): void {}
  /** Plans have no COPY; refusing it keeps the server from waiting. */
  handleCopyInResponse(connection: { sendCopyFail(message: string): void }): void {
    connection.sendCopyFail('COPY is not possible here')
  }

  /** Yields chunks as they arrive; the socket flows while they are taken. Throws the failure that ends the rows early. */
  async *chunks(): AsyncGenerator<Buffer, void> {
    while (true) {
      const taken = this.takeRows()
      yield* taken
      if (taken.length > 0) continue
      if (this.failure) throw this.failure
      if (this.done) return
      const next = Promise.withResolvers<void>()
      this.#wake = next.resolve
      this.#client.flow()
      await next.promise
    }
  }

  /** Takes the finished chunks out of the buffer. */
  takeRows(): readonly Buffer[] {
    const taken = this.writer?.take() ?? []
    this.#budget?.reserve(0)
    return taken
  }

  #notify(): void {
    this.#wake?.()
    this.#wake = undefined
  }
}

const NOTHING_WRITTEN = 'Nothing was written. Ask for fewer columns back, or for head.'

const QUERY_CANCELED = '57014'
