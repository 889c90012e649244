/**
 * Rows become JSON here without being parsed into values: the bytes of the text protocol are copied into the answer, by column
 * type (design/stack.md "Rows to JSON"). Measured against strings (2× slower) and against json_agg in bench/rows-to-json.ts.
 */
export type ColumnWriter = { readonly name: string; readonly head: Buffer; readonly how: How }

type How = (typeof how)[keyof typeof how]
const how = { text: 0, raw: 1, bool: 2, real: 3, timestamp: 4, instant: 5, json: 6 } as const

/** By type OID; everything else is text. The numbers are fixed in PostgreSQL's pg_type.dat. */
const byOid = new Map<number, How>([
  [16, how.bool],
  [20, how.raw], // int8
  [21, how.raw], // int2
  [23, how.raw], // int4
  [26, how.raw], // oid
  [114, how.json],
  [3802, how.json], // jsonb
  [700, how.real], // float4
  [701, how.real], // float8
  [1700, how.real], // numeric
  [1114, how.timestamp],
  [1184, how.instant], // timestamptz
])

export const columnWriter = (name: string, oid: number): ColumnWriter => ({
  name,
  head: Buffer.from(`${JSON.stringify(name)}:`),
  how: byOid.get(oid) ?? how.text,
})

const largestChunk = 65_536

/** Collects the array of rows in chunks. */
export class RowWriter {
  rows = 0
  /** There was at least one row above the limit; it is left out. */
  more = false
  /** Bytes in finished chunks that nobody has taken yet. */
  waiting = 0
  readonly #columns: readonly ColumnWriter[]
  readonly #stripNulls: boolean
  readonly #limit: number
  /** Most bytes that a row needs beside its values: names, quotes, commas, braces. */
  readonly #frame: number
  #chunks: Buffer[] = []
  #out: Buffer
  #at = 0

  constructor(columns: readonly ColumnWriter[], options: { stripNulls: boolean; limit: number }) {
    this.#columns = columns
    this.#stripNulls = options.stripNulls
    this.#limit = options.limit
    this.#frame = columns.reduce((sum, column) => sum + column.head.length + 8, 4)
    this.#out = Buffer.allocUnsafe(1024)
    this.#out[this.#at++] = 0x5b // [
  }

  /** A DataRow message from its first column (after the column count) to its end; `ahead` bytes of the same answer lie there too. */
  row(data: Buffer, from: number, end: number, ahead: number): void {
    if (this.rows >= this.#limit) {
      this.more = true
      return
    }
    this.#reserve(this.#frame + worstCase(data, from, end), ahead)
    if (this.rows++ > 0) this.#out[this.#at++] = 0x2c // ,
    this.#at = this.#members(data, from, this.#out, this.#at)
  }

  #members(data: Buffer, from: number, out: Buffer, start: number): number {
    const columns = this.#columns
    let at = start
    let read = from
    out[at++] = 0x7b // {
    let first = true
    for (let index = 0; index < columns.length; index++) {
      const length = data.readInt32BE(read)
      read += 4
      const column = columns[index] as ColumnWriter // index is below the length
      if (this.#stripNulls && isNull(data, read, length, column.how)) {
        read += Math.max(0, length)
        continue
      }
      if (first) first = false
      else out[at++] = 0x2c
      at = copy(column.head, 0, column.head.length, out, at)
      if (length < 0) at = copy(nullText, 0, 4, out, at)
      else at = writeValue(column.how, data, read, read + length, out, at)
      if (length > 0) read += length
    }
    out[at++] = 0x7d // }
    return at
  }

  #reserve(bytes: number, ahead: number): void {
    if (this.#at + bytes + 1 <= this.#out.length) return
    this.#finishChunk()
    this.#out = Buffer.allocUnsafe(Math.max(bytes + 1, Math.min(largestChunk, ahead * 2)))
  }

  #finishChunk(): void {
    if (this.#at === 0) return
    this.waiting += this.#at
    this.#chunks.push(this.#out.subarray(0, this.#at))
    this.#at = 0
  }

  finish(): void {
    this.#reserve(1, 64)
    this.#out[this.#at++] = 0x5d // ]
    this.#finishChunk()
  }

  /** The finished chunks; they are the taker's from now on. */
  take(): Buffer[] {
    const chunks = this.#chunks
    this.#chunks = []
    this.waiting = 0
    return chunks
  }
}

const nullText = Buffer.from('null')
const trueText = Buffer.from('true')
const falseText = Buffer.from('false')

/** How many bytes the values can become: every one of them six (`\u001f`); counted when that would be too much memory. */
function worstCase(data: Buffer, from: number, end: number): number {
  const length = end - from
  if (length <= 4096) return length * 6
  let escapes = 0
  for (let at = from; at < end; at++) if (needsEscape(data[at] as number)) escapes++
  return length + escapes * 5
}

const needsEscape = (byte: number): boolean => byte < 0x20 || byte === 0x22 || byte === 0x5c

const isNull = (data: Buffer, at: number, length: number, kind: How): boolean =>
  length < 0 || (kind === how.json && length === 4 && data.readInt32BE(at) === 0x6e756c6c)

function writeValue(kind: How, data: Buffer, from: number, end: number, out: Buffer, at: number): number {
  switch (kind) {
    case how.raw:
    case how.json:
      return copy(data, from, end, out, at)
    case how.bool:
      return data[from] === 0x74 ? copy(trueText, 0, 4, out, at) : copy(falseText, 0, 5, out, at)
    case how.real:
      return isNumber(data, from) ? copy(data, from, end, out, at) : writeText(data, from, end, out, at)
    case how.timestamp:
      return writeTimestamp(data, from, end, out, at)
    case how.instant:
      return writeInstant(data, from, end, out, at)
    default:
      return writeText(data, from, end, out, at)
  }
}

/** Not `NaN`, `Infinity`, `-Infinity`, which JSON cannot say as numbers. */
function isNumber(data: Buffer, from: number): boolean {
  const first = data[from] === 0x2d ? data[from + 1] : data[from]
  return first !== 0x4e && first !== 0x49
}

/** `2026-01-31 00:00:00.5` → `"2026-01-31T00:00:00.5"`; what ISO 8601 cannot write stays as the database has it. */
function writeTimestamp(data: Buffer, from: number, end: number, out: Buffer, start: number): number {
  let at = start
  out[at++] = 0x22
  at = copy(data, from, end, out, at)
  if (isCommonDate(data, from, end)) out[start + 11] = 0x54 // T
  out[at++] = 0x22
  return at
}

/** `2026-01-31 00:00:00.5+00` → `"2026-01-31T00:00:00.5Z"`; connections run in UTC. */
function writeInstant(data: Buffer, from: number, end: number, out: Buffer, start: number): number {
  const at = writeTimestamp(data, from, end, out, start)
  if (!isCommonDate(data, from, end) || data[end - 3] !== 0x2b) return at
  out[at - 4] = 0x5a // Z
  out[at - 3] = 0x22
  return at - 2
}

/** Four digits of year, a space before the time, no ` BC`. */
const isCommonDate = (data: Buffer, from: number, end: number): boolean =>
  data[from + 4] === 0x2d && data[from + 10] === 0x20 && data[end - 1] !== 0x43

function writeText(data: Buffer, from: number, end: number, out: Buffer, start: number): number {
  let at = start
  out[at++] = 0x22
  for (let read = from; read < end; read++) {
    const byte = data[read] as number // read is below end
    if (needsEscape(byte)) at = writeEscape(byte, out, at)
    else out[at++] = byte
  }
  out[at++] = 0x22
  return at
}

function writeEscape(byte: number, out: Buffer, start: number): number {
  let at = start
  out[at++] = 0x5c
  const short = shortEscapes.get(byte)
  if (short !== undefined) {
    out[at++] = short
    return at
  }
  return at + out.write(`u00${byte.toString(16).padStart(2, '0')}`, at, 'latin1')
}

/** RFC 8259, section 7. */
const shortEscapes = new Map([
  [0x22, 0x22],
  [0x5c, 0x5c],
  [0x08, 0x62],
  [0x0c, 0x66],
  [0x0a, 0x6e],
  [0x0d, 0x72],
  [0x09, 0x74],
])

/** A loop beats Buffer.copy below some hundred bytes, where most values are. */
function copy(from: Buffer, start: number, end: number, out: Buffer, position: number): number {
  let at = position
  if (end - start > 256) return at + from.copy(out, at, start, end)
  for (let read = start; read < end; read++) out[at++] = from[read] as number
  return at
}
