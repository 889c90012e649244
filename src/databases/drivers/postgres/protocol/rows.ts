import {
  NOWHERE,
  type Phrase,
  type Place,
  phrase,
  placeOf,
  SLACK,
  writePhrase,
} from '#databases/drivers/postgres/protocol/byte-copies.ts'
import { FORMAT, type Format, formatOf } from '#databases/drivers/postgres/protocol/column-formats.ts'
import { writeCell } from '#databases/drivers/postgres/protocol/csv-cells.ts'
import { needsEscape, writeJsonValue } from '#databases/drivers/postgres/protocol/json-values.ts'

/**
 * Writes rows as JSON without parsing values: bytes of the text protocol are copied into the answer, by column type. Measured against
 * strings (2× slower) and against json_agg in bench/rows-to-json.ts.
 */
export type ColumnWriter = {
  readonly name: string
  readonly format: Format
  /** The bytes before a value, with the comma of the previous member: `,"name":`. */
  readonly head: Phrase
  /** The bytes of the member when the value is NULL. */
  readonly absent: Phrase
}

/** A relation is JSON with one row per line. */
export function columnWriter(name: string, oid: number, isRelation = false): ColumnWriter {
  const head = `,${JSON.stringify(name)}:`
  return {
    name,
    format: isRelation ? FORMAT.relation : formatOf(oid),
    head: phrase(head),
    absent: phrase(`${head}null`),
  }
}

/** The writers of a prepared statement, if they have these names. */
export function reusable(
  writers: readonly ColumnWriter[] | undefined,
  members: readonly string[] | undefined,
): readonly ColumnWriter[] | undefined {
  if (writers === undefined || members === undefined) return undefined
  return writers.every((writer, index) => writer.name === members[index]) ? writers : undefined
}

const MAX_CHUNK = 65_536
/** A tab before a JSON null, where that has to differ from an SQL NULL. The server writes no tab before a member of jsonb. */
const JSON_NULL_MARK = 0x09

type RowWriterOptions = {
  readonly stripNulls: boolean
  readonly limit: number
  readonly marksJsonNull?: boolean
  /** The rows are lines of CSV, without the names of the columns. */
  readonly isCsv?: boolean
}

/** Collects the array of rows, or their lines, in chunks. */
export class RowWriter {
  rows = 0
  /** Rows of relations inside the rows. */
  related = 0
  /** There was at least one row above the limit, which is left out. */
  more = false
  /** Bytes in finished chunks that have not been taken. */
  waiting = 0
  readonly #columns: readonly ColumnWriter[]
  readonly #writing: RowWriterOptions
  /** The most bytes that a row needs besides its values: names, quotes, commas, braces. */
  readonly #frame: number
  #chunks: Buffer[] = []
  #out: Place
  #at = 0
  /** The bytes of the last row. */
  #from: Place = NOWHERE

  constructor(columns: readonly ColumnWriter[], writing: RowWriterOptions) {
    this.#columns = columns
    this.#writing = writing
    this.#frame = columns.reduce((sum, column) => sum + column.absent.length + 8, 4 + SLACK)
    this.#out = placeOf(Buffer.allocUnsafe(1024))
    if (!writing.isCsv) this.#out.bytes[this.#at++] = 0x5b // [
  }

  /** A DataRow message from its first column (after the column count) to its end; `ahead` bytes of the same answer lie there too. */
  row(data: Buffer, from: number, end: number, ahead: number): void {
    if (this.rows >= this.#writing.limit) {
      this.more = true
      return
    }
    if (this.#from.bytes !== data) this.#from = placeOf(data)
    this.#reserve(this.#frame + worstCase(data, from, end), ahead)
    this.rows++
    if (this.#writing.isCsv) {
      this.#at = this.#cells(this.#from, from, this.#out, this.#at)
      return
    }
    if (this.rows > 1) this.#out.bytes[this.#at++] = 0x2c // ,
    this.#at = this.#members(this.#from, from, this.#out, this.#at)
  }

  #members(data: Place, from: number, out: Place, start: number): number {
    const columns = this.#columns
    const { stripNulls, marksJsonNull } = this.#writing
    let at = start
    let read = from
    for (let index = 0; index < columns.length; index++) {
      const length = data.view.getInt32(read)
      read += 4
      const column = columns[index] as ColumnWriter // index is below the length
      if (stripNulls && isNull(data.view, read, length, column.format)) {
        read += Math.max(0, length)
        continue
      }
      if (length < 0) {
        at = writePhrase(column.absent, out, at)
        continue
      }
      if (column.format === FORMAT.relation) this.related += linesIn(data.bytes, read, read + length)
      at = writePhrase(column.head, out, at)
      if (marksJsonNull && isNull(data.view, read, length, column.format)) out.bytes[at++] = JSON_NULL_MARK
      at = writeJsonValue(column.format, data, read, read + length, out, at)
      read += length
    }
    // Overwrites the comma before the first member.
    out.bytes[start] = 0x7b // {
    if (at === start) at++
    out.bytes[at++] = 0x7d // }
    return at
  }

  #cells(data: Place, from: number, out: Place, start: number): number {
    const columns = this.#columns
    let at = start
    let read = from
    for (let index = 0; index < columns.length; index++) {
      const length = data.view.getInt32(read)
      read += 4
      if (index > 0) out.bytes[at++] = 0x2c // ,
      if (length < 0) continue
      const { format } = columns[index] as ColumnWriter // index is below the length
      if (format === FORMAT.relation) this.related += linesIn(data.bytes, read, read + length)
      at = writeCell(format, data, read, read + length, out, at)
      read += length
    }
    out.bytes[at++] = 0x0d
    out.bytes[at++] = 0x0a
    return at
  }

  #reserve(bytes: number, ahead: number): void {
    if (this.#at + bytes + 1 <= this.#out.bytes.length) return
    this.#finishChunk()
    this.#out = placeOf(Buffer.allocUnsafe(Math.max(bytes + 1, Math.min(MAX_CHUNK, ahead * 2))))
  }

  #finishChunk(): void {
    if (this.#at === 0) return
    this.waiting += this.#at
    this.#chunks.push(this.#out.bytes.subarray(0, this.#at))
    this.#at = 0
  }

  finish(): void {
    this.#reserve(1, 64)
    if (!this.#writing.isCsv) this.#out.bytes[this.#at++] = 0x5d // ]
    this.#finishChunk()
  }

  /** Takes the finished chunks out of the buffer. */
  take(): Buffer[] {
    const chunks = this.#chunks
    this.#chunks = []
    this.waiting = 0
    return chunks
  }
}

/** The most bytes that the values can become: six for each byte (`\u001f`); counted exactly when that would be too much memory. */
function worstCase(data: Buffer, from: number, end: number): number {
  const length = end - from
  if (length <= 4096) return length * 6
  let escapes = 0
  for (let at = from; at < end; at++) if (needsEscape(data[at] as number)) escapes++
  return length + escapes * 5
}

function linesIn(data: Buffer, from: number, end: number): number {
  const bytes = data.subarray(from, end)
  let lines = 0
  for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, at + 1)) lines++
  return lines
}

const isNull = (data: DataView, at: number, length: number, format: Format): boolean =>
  length < 0 || (format === FORMAT.json && length === 4 && data.getInt32(at) === 0x6e756c6c)
