import type { ResultColumn } from '#databases/drivers/driver.ts'
import { FORMAT } from '#databases/drivers/postgres/protocol/column-formats.ts'
import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import {
  type ArrayWriter,
  arrayWriter,
  rewriteRow,
} from '#databases/drivers/postgres/protocol/json-arrays.ts'
import { columnWriter, RowWriter } from '#databases/drivers/postgres/protocol/rows.ts'
import { typeNameOf } from '#databases/drivers/postgres/protocol/type-names.ts'
import { encodeExecute, encodeParse, SYNC_MESSAGE } from '#databases/drivers/postgres/protocol/wire.ts'
import { answerTooLarge } from '#databases/drivers/result-limits.ts'
import { fail } from '#databases/failures.ts'

export type Script = {
  readonly statements: readonly string[]
  /** Parameters of a single statement, by the types that the server reports. */
  readonly values: (types: readonly number[]) => readonly (string | null)[]
  /** Any statement with more rows than this ends the script. */
  readonly maxRows: number
  /** A statement with more bytes ends it too: rows are buffered until the answer is known to be small enough. */
  readonly maxBytes: number
}

const JSON_TYPE = 114

/**
 * Runs a caller's statements on one connection, one after the other in the extended protocol, as a `Submittable` of pg. `Sync` follows the
 * last one: nothing is committed before, so closing the connection (too many rows, the caller has left) undoes everything except explicit
 * commits of the caller.
 */
export class ScriptRun {
  readonly ended: Promise<void>
  /** Rows of the last statement; undefined when it has none. */
  writer: RowWriter | undefined
  columns: readonly ResultColumn[] = []
  /** Rows changed by all statements. */
  affected = 0
  completed = 0
  done = false
  parsed = false
  /** Its rows are collected, so it never pauses the socket; too many rows end it. */
  readonly isFull = false
  failure: Error | undefined
  /** pg reads these. */
  readonly name = ''
  readonly text = ''
  callback = (): void => {}
  readonly #client: RowClient
  readonly #script: Script
  #synced = false
  /** For rows with arrays: the writer of each column. */
  #arrays: readonly (ArrayWriter | undefined)[] | undefined
  readonly #ended = Promise.withResolvers<void>()

  constructor(client: RowClient, script: Script) {
    this.#client = client
    this.#script = script
    this.ended = this.#ended.promise
    this.ended.catch(() => {})
  }

  submit(): void {
    this.#client.active = this
    this.#next()
  }

  #next(): void {
    const text = this.#script.statements[this.completed]
    if (text === undefined) this.#sync()
    else {
      this.writer = undefined
      this.columns = []
      this.#client.connection.stream.write(encodeParse(text))
    }
  }

  /** Once only: a deferred constraint fails after it, and the answer to a second Sync would be taken as the next query's. */
  #sync(): void {
    if (this.#synced) return
    this.#synced = true
    this.#client.connection.stream.write(SYNC_MESSAGE)
  }

  describe(types: readonly number[]): void {
    try {
      this.#client.connection.stream.write(encodeExecute(this.#script.values(types)))
    } catch (error) {
      this.failure ??= error as Error // `values` throws Failures
      this.#sync()
    }
  }

  handleRowDescription(message: { fields: readonly { name: string; dataTypeID: number }[] }): void {
    const arrays = message.fields.map(({ dataTypeID }) => arrayWriter(dataTypeID))
    this.#arrays = arrays.some((array) => array !== undefined) ? arrays : undefined
    const writers = message.fields.map(({ name, dataTypeID }, index) =>
      columnWriter(name, arrays[index] === undefined ? dataTypeID : JSON_TYPE),
    )
    this.writer = new RowWriter(writers, { stripNulls: false, limit: this.#script.maxRows })
    this.columns = writers.map(({ name, format }, index) => ({
      ...{ name, isJson: format === FORMAT.json },
      type: typeNameOf(message.fields[index]?.dataTypeID ?? 0),
    }))
  }

  row(data: Buffer, from: number, end: number, ahead: number): void {
    const { writer } = this
    if (writer === undefined || this.failure !== undefined) return
    if (this.#arrays === undefined) writer.row(data, from, end, ahead)
    else {
      const rewritten = rewriteRow(data, from, this.#arrays)
      writer.row(rewritten, 0, rewritten.length, rewritten.length)
    }
    const { maxRows, maxBytes } = this.#script
    if (writer.more) this.refuse(tooManyRows(maxRows))
    else if (writer.waiting > maxBytes)
      this.refuse(answerTooLarge(maxBytes, 'Ask for fewer rows. What the statement changed is undone.'))
  }

  /** `INSERT 0 5`, `UPDATE 3`, `SELECT 3`: reading changes nothing. */
  handleCommandComplete(message: { text: string }): void {
    const [, changed] = /^(?:INSERT \d+|UPDATE|DELETE|MERGE|COPY) (\d+)$/.exec(message.text) ?? []
    this.affected += Number(changed ?? 0)
    this.completed++
    this.#next()
  }

  handleEmptyQuery(): void {
    this.completed++
    this.#next()
  }

  handleReadyForQuery(): void {}
  handlePortalSuspended(): void {}

  handleCopyInResponse(connection: { sendCopyFail(message: string): void }): void {
    this.failure ??= noCopy()
    connection.sendCopyFail('COPY FROM STDIN is not possible here')
  }
  handleCopyData(): void {
    this.refuse(noCopy())
  }

  /** The server skips all messages up to the next Sync and is ready after it. */
  handleError(error: Error): void {
    this.failure ??= error
    if (!this.#client.isAlive()) this.settle()
    else this.#sync()
  }

  refuse(failure: Error): void {
    this.failure ??= failure
    this.#client.destroy()
  }

  settle(): void {
    if (this.done) return
    this.done = true
    if (this.#client.active === this) this.#client.active = undefined
    if (!this.failure && !this.#client.isAlive()) this.failure = new Error('Connection terminated')
    if (this.failure) this.#ended.reject(this.failure)
    else {
      this.writer?.finish()
      this.#ended.resolve()
    }
  }
}

const tooManyRows = (maximum: number) =>
  fail('result_too_large', {
    hint: `A statement returned more than ${maximum} rows. Its changes are undone. Add a LIMIT.`,
    details: { maximum },
  })

const noCopy = () =>
  fail('not_supported', { message: 'COPY has no channel here', hint: 'Use PUT /gateway/insert, or SELECT.' })
