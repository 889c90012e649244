import type { Presence } from '#databases/drivers/driver.ts'
import type { MemoryBudget } from '#databases/drivers/memory-budget.ts'
import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import type { Prepared } from '#databases/drivers/postgres/protocol/prepared-statements.ts'
import { type ColumnWriter, columnWriter, RowWriter } from '#databases/drivers/postgres/protocol/rows.ts'
import type {
  FirstStatement,
  RunOptions,
  Statement,
} from '#databases/drivers/postgres/protocol/run-options.ts'
import { encodeRun, SYNC_MESSAGE } from '#databases/drivers/postgres/protocol/wire.ts'
import { answerTooLarge, tooManyRelated } from '#databases/drivers/result-limits.ts'
import { fail } from '#databases/failures.ts'

/**
 * One statement on one connection, in pg's `Submittable` form. States: sent → collecting → (flowing ⇄ full) → ended | failed.
 * `ready` settles when the rows are all here or the high-water mark is reached. The connection pauses while a query is full.
 */
export class RowQuery {
  readonly ready: Promise<void>
  writer: RowWriter | undefined
  affected = 0
  /** The server has accepted the text, so a statement of this name exists there. */
  parsed = false
  done = false
  failure: Error | undefined
  /** Called when its connection is free, though rows may still wait to be taken. */
  whenOver: (() => void) | undefined
  /** pg looks at these; empty, so that it keeps no book of statements itself. */
  readonly name = ''
  readonly text = ''
  callback = (): void => {}
  readonly #client: RowClient
  readonly #statement: Statement
  readonly #options: RunOptions
  readonly #ready = Promise.withResolvers<void>()
  #prepared: Prepared | undefined
  #isKnown = false
  /** The statement that goes first has not succeeded yet. */
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
    // Whoever streams sees a failure with the rows; the promise must not count as unhandled then.
    this.ready.catch(() => {})
  }

  /** pg calls it when the connection is this query's. */
  submit(): void {
    this.#client.active = this
    if (this.#prepared === undefined) this.send()
  }

  /** Writes it to the connection: by `submit`, or before, while others are still answered (`RowClient.follow`). */
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

  /** Its rows are nobody's: the connection has them dropped here until it is done. */
  #begins({ name, text, values }: FirstStatement) {
    const { statements } = this.#client
    this.#isWaiting = true
    const isKnown = name !== '' && statements.find(name, text) !== undefined
    if (!isKnown && name !== '') statements.add(name, { text, types: undefined, writers: undefined })
    return { name, parse: isKnown ? undefined : text, values }
  }

  /** It failed before the statement began: as whom it was to run could not be set. */
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
    const writers =
      reusable(this.#prepared?.writers, members) ??
      types.map((type, index) =>
        columnWriter(members?.[index] ?? fields?.[index]?.name ?? '', type, relations?.at.has(index)),
      )
    if (this.#prepared) this.#prepared.writers = writers
    this.writer = new RowWriter(writers, this.#options)
  }

  row(data: Buffer, from: number, end: number, ahead: number): void {
    const { writer } = this
    if (writer === undefined || this.#isWaiting) return
    writer.row(data, from, end, ahead)
    const { most, commitsLast, relations } = this.#options
    if (relations !== undefined && writer.rows + writer.related > relations.rows)
      this.refuse(tooManyRelated(relations.rows))
    if (this.#budget?.reserve(writer.waiting) === false) this.refuse(tooSlow())
    if (most !== undefined && writer.waiting > most)
      this.refuse(answerTooLarge(most, commitsLast ? NOTHING_WRITTEN : undefined))
    if (writer.waiting < this.#options.highWater) return
    this.#ready.resolve()
    this.#notify()
  }

  /** As many bytes wait as may. */
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
      this.#followed()
      return
    }
    this.#isComplete = true
    this.#sync()
    this.affected = Number(/\d+$/.exec(message.text)?.[0] ?? 0)
  }

  /** Once only: the answer to a second one would be taken for the next statement's. */
  #sync(): void {
    if (!this.#options.commitsLast || this.#isSynced) return
    this.#isSynced = true
    this.#client.connection.stream.write(SYNC_MESSAGE)
  }

  /** What comes from here on is of the statement itself, also that its text was accepted. */
  #followed(): void {
    this.#isWaiting = false
    this.parsed = this.#isKnown
  }

  /** Everything is settled by `settle`, which comes right after, and also where pg does not tell the query. */
  handleReadyForQuery(): void {}

  /** An error of the server is kept until the connection is ready again; a broken connection has nothing more to say. */
  handleError(error: Error): void {
    this.failure ??= error
    if (!this.#client.isAlive()) this.settle()
    else this.#sync()
  }

  /** It is to be asked elsewhere, through no fault of its own; nobody reads what may still come. */
  displace(): void {
    this.failure ??= new Displaced()
    this.settle()
  }

  /** The gateway itself ends the statement, and its connection with it. */
  refuse(failure: Error): void {
    this.failure ??= failure
    this.#client.destroy()
  }

  /** Nobody wants the rest of the rows: breaking the connection off ends the statement sooner than reading on. */
  abandon(): void {
    this.#client.breakOff()
  }

  /** The connection is free again, or gone. */
  settle(): void {
    if (this.done) return
    this.done = true
    if (this.#client.active === this) this.#client.active = undefined
    if (!this.failure && !this.#client.isAlive()) this.failure = new Error('Connection terminated')
    // Whoever came next would be taken for the rest of it.
    if (!this.failure && !this.#isComplete)
      this.refuse(new Error('Connection terminated in the middle of an answer'))
    if (this.failure) this.#fail(this.failure)
    else {
      this.writer?.finish()
      this.#ready.resolve()
    }
    this.#notify()
    // After the chunk that the end was in.
    if (this.whenOver !== undefined) queueMicrotask(this.whenOver)
  }

  #fail(failure: Error): void {
    const { name, first } = this.#options
    if (codeOf(failure) === QUERY_CANCELED) this.#client.cancelled()
    if (this.#isWaiting && first) {
      this.#client.statements.drop(first.name)
      this.parsed = this.#isKnown
    }
    // A text that the server did not accept, or does not accept any more, must be parsed again.
    if (name !== '' && (!this.parsed || STALE_CODES.has(codeOf(failure)))) this.#client.statements.drop(name)
    this.#ready.reject(failure)
  }

  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
  handleCopyData(): void {}
  /** COPY is not a statement of the planned path; the server is told so rather than left waiting. */
  handleCopyInResponse(connection: { sendCopyFail(message: string): void }): void {
    connection.sendCopyFail('COPY is not possible here')
  }

  /** Chunks as they come; the socket flows while they are taken. Ends with the rows, throws what broke them off. */
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

  /** The finished chunks; they are the taker's from now on. */
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

const tooSlow = () =>
  fail('result_too_large', {
    message: 'The answer is too large for a reader as slow as this, while others are slow as well',
    hint: 'Ask for fewer rows, or read faster.',
  })

/** A query that was behind another on its connection, which has broken off or takes too long. It only read. */
export class Displaced extends Error {}

/**
 * The plan of a prepared statement no longer fits the tables · there is no such statement, or there is one already (a pooler in
 * between has given another connection).
 */
export const STALE_CODES: ReadonlySet<string> = new Set(['0A000', '26000', '42P05'])

const QUERY_CANCELED = '57014'

export const codeOf = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : ''

function reusable(
  writers: readonly ColumnWriter[] | undefined,
  members: readonly string[] | undefined,
): readonly ColumnWriter[] | undefined {
  if (writers === undefined || members === undefined) return undefined
  return writers.every((writer, index) => writer.name === members[index]) ? writers : undefined
}
