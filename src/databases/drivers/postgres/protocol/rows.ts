import { writeEscape } from '#databases/drivers/postgres/protocol/json-escapes.ts'

/**
 * Writes rows as JSON without parsing values: bytes of the text protocol are copied into the answer, by column type. Measured against
 * strings (2× slower) and against json_agg in bench/rows-to-json.ts.
 */
export type ColumnWriter = {
  readonly name: string
  readonly how: How
  /** The bytes before a value, with the comma of the previous member: `,"name":`. */
  readonly head: Phrase
  /** The bytes of the member when the value is NULL. */
  readonly absent: Phrase
}

type How = (typeof FORMAT)[keyof typeof FORMAT]
const FORMAT = { text: 0, raw: 1, bool: 2, real: 3, timestamp: 4, instant: 5, json: 6, relation: 7 } as const

/** By type OID; other types are text. The numbers are fixed in PostgreSQL's pg_type.dat. */
const BY_OID = new Map<number, How>([
  [16, FORMAT.bool],
  [20, FORMAT.raw], // int8
  [21, FORMAT.raw], // int2
  [23, FORMAT.raw], // int4
  [26, FORMAT.raw], // oid
  [114, FORMAT.json],
  [3802, FORMAT.json], // jsonb
  [700, FORMAT.real], // float4
  [701, FORMAT.real], // float8
  [1700, FORMAT.real], // numeric
  [1114, FORMAT.timestamp],
  [1184, FORMAT.instant], // timestamptz
])

/** A relation is JSON with one row per line. */
export function columnWriter(name: string, oid: number, isRelation = false): ColumnWriter {
  const head = `,${JSON.stringify(name)}:`
  return {
    name,
    how: isRelation ? FORMAT.relation : (BY_OID.get(oid) ?? FORMAT.text),
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

/** Bytes, and a view to access four at once. */
type Place = { readonly bytes: Buffer; readonly view: DataView }

const placeOf = (bytes: Buffer): Place => ({
  bytes,
  view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length),
})
const NOWHERE = placeOf(Buffer.alloc(0))

/** Copies write four bytes at once, so up to three bytes after their end, which the next copy overwrites. */
const SLACK = 3

/** A frequently written text. */
type Phrase = { readonly words: Int32Array; readonly length: number }

function phrase(text: string): Phrase {
  const bytes = Buffer.from(text)
  const words = new Int32Array(Math.ceil(bytes.length / 4))
  const { view } = placeOf(Buffer.concat([bytes, Buffer.alloc(SLACK)]))
  return { words: words.map((_, index) => view.getInt32(4 * index, true)), length: bytes.length }
}

function writePhrase({ words, length }: Phrase, out: Place, at: number): number {
  for (let index = 0; index < words.length; index++)
    out.view.setInt32(at + 4 * index, words[index] as number, true) // the index is below the length
  return at + length
}

/** A loop is faster than Buffer.copy for less than some hundred bytes, which is most values. */
function copy(from: Place, start: number, end: number, out: Place, at: number): number {
  const length = end - start
  if (length > 1024 || start + length + SLACK > from.bytes.length)
    return at + from.bytes.copy(out.bytes, at, start, end)
  for (let offset = 0; offset < length; offset += 4)
    out.view.setInt32(at + offset, from.view.getInt32(start + offset, true), true)
  return at + length
}

type Writing = { readonly stripNulls: boolean; readonly limit: number; readonly marksJsonNull?: boolean }

/** Collects the array of rows in chunks. */
export class RowWriter {
  rows = 0
  /** Rows of relations inside the rows. */
  related = 0
  /** There was at least one row above the limit, which is left out. */
  more = false
  /** Bytes in finished chunks that have not been taken. */
  waiting = 0
  readonly #columns: readonly ColumnWriter[]
  readonly #writing: Writing
  /** The most bytes that a row needs besides its values: names, quotes, commas, braces. */
  readonly #frame: number
  #chunks: Buffer[] = []
  #out: Place
  #at = 0
  /** The bytes of the last row. */
  #from: Place = NOWHERE

  constructor(columns: readonly ColumnWriter[], writing: Writing) {
    this.#columns = columns
    this.#writing = writing
    this.#frame = columns.reduce((sum, column) => sum + column.absent.length + 8, 4 + SLACK)
    this.#out = placeOf(Buffer.allocUnsafe(1024))
    this.#out.bytes[this.#at++] = 0x5b // [
  }

  /** A DataRow message from its first column (after the column count) to its end; `ahead` bytes of the same answer lie there too. */
  row(data: Buffer, from: number, end: number, ahead: number): void {
    if (this.rows >= this.#writing.limit) {
      this.more = true
      return
    }
    if (this.#from.bytes !== data) this.#from = placeOf(data)
    this.#reserve(this.#frame + worstCase(data, from, end), ahead)
    if (this.rows++ > 0) this.#out.bytes[this.#at++] = 0x2c // ,
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
      if (stripNulls && isNull(data.view, read, length, column.how)) {
        read += Math.max(0, length)
        continue
      }
      if (length < 0) {
        at = writePhrase(column.absent, out, at)
        continue
      }
      if (column.how === FORMAT.relation) this.related += linesIn(data.bytes, read, read + length)
      at = writePhrase(column.head, out, at)
      if (marksJsonNull && isNull(data.view, read, length, column.how)) out.bytes[at++] = JSON_NULL_MARK
      at = writeValue(column.how, data, read, read + length, out, at)
      read += length
    }
    // Overwrites the comma before the first member.
    out.bytes[start] = 0x7b // {
    if (at === start) at++
    out.bytes[at++] = 0x7d // }
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
    this.#out.bytes[this.#at++] = 0x5d // ]
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

const TRUE_TEXT = phrase('true')
const FALSE_TEXT = phrase('false')

/** The most bytes that the values can become: six for each byte (`\u001f`); counted exactly when that would be too much memory. */
function worstCase(data: Buffer, from: number, end: number): number {
  const length = end - from
  if (length <= 4096) return length * 6
  let escapes = 0
  for (let at = from; at < end; at++) if (needsEscape(data[at] as number)) escapes++
  return length + escapes * 5
}

const needsEscape = (byte: number): boolean => byte < 0x20 || byte === 0x22 || byte === 0x5c

function linesIn(data: Buffer, from: number, end: number): number {
  const bytes = data.subarray(from, end)
  let lines = 0
  for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, at + 1)) lines++
  return lines
}

const isNull = (data: DataView, at: number, length: number, kind: How): boolean =>
  length < 0 || (kind === FORMAT.json && length === 4 && data.getInt32(at) === 0x6e756c6c)

function writeValue(kind: How, data: Place, from: number, end: number, out: Place, at: number): number {
  switch (kind) {
    case FORMAT.raw:
    case FORMAT.json:
    case FORMAT.relation:
      return copy(data, from, end, out, at)
    case FORMAT.bool:
      return writePhrase(data.bytes[from] === 0x74 ? TRUE_TEXT : FALSE_TEXT, out, at)
    case FORMAT.real:
      return isNumber(data.bytes, from) ? copy(data, from, end, out, at) : writeText(data, from, end, out, at)
    case FORMAT.timestamp:
      return writeTimestamp(data, from, end, out, at)
    case FORMAT.instant:
      return writeInstant(data, from, end, out, at)
    default:
      return writeText(data, from, end, out, at)
  }
}

/** False for `NaN`, `Infinity` and `-Infinity`, which are not JSON numbers. */
function isNumber(data: Buffer, from: number): boolean {
  const first = data[from] === 0x2d ? data[from + 1] : data[from]
  return first !== 0x4e && first !== 0x49
}

/** `2026-01-31 00:00:00.5` → `"2026-01-31T00:00:00.5"`; other dates stay as the database writes them. */
function writeTimestamp(data: Place, from: number, end: number, out: Place, start: number): number {
  out.bytes[start] = 0x22
  const at = copy(data, from, end, out, start + 1)
  if (isCommonDate(data.bytes, from, end)) out.bytes[start + 11] = 0x54 // T
  out.bytes[at] = 0x22
  return at + 1
}

/** `2026-01-31 00:00:00.5+00` → `"2026-01-31T00:00:00.5Z"`; connections run in UTC. */
function writeInstant(data: Place, from: number, end: number, out: Place, start: number): number {
  const at = writeTimestamp(data, from, end, out, start)
  if (!isCommonDate(data.bytes, from, end) || data.bytes[end - 3] !== 0x2b) return at
  out.bytes[at - 4] = 0x5a // Z
  out.bytes[at - 3] = 0x22
  return at - 2
}

/** Four digits of year, a space before the time, no ` BC`. */
const isCommonDate = (data: Buffer, from: number, end: number): boolean =>
  data[from + 4] === 0x2d && data[from + 10] === 0x20 && data[end - 1] !== 0x43

/** Copies four bytes at a time while none of them needs an escape. */
function writeText(data: Place, from: number, end: number, out: Place, start: number): number {
  let at = start
  let read = from
  out.bytes[at++] = 0x22
  while (read < end) {
    for (; read + 4 <= end; read += 4, at += 4) {
      const word = data.view.getInt32(read, true)
      if (someNeedsEscape(word)) break
      out.view.setInt32(at, word, true)
    }
    for (const stop = Math.min(read + 4, end); read < stop; read++) {
      const byte = data.bytes[read] as number // it is below end
      if (needsEscape(byte)) at = writeEscape(byte, out.bytes, at)
      else out.bytes[at++] = byte
    }
  }
  out.bytes[at++] = 0x22
  return at
}

/**
 * Whether one of the four bytes is below 0x20, a quote or a backslash: with the test for "a byte below n" of Bit Twiddling Hacks
 * (Sean Eron Anderson), where a byte equals x when its difference from x by XOR is below 1.
 */
function someNeedsEscape(word: number): boolean {
  const quote = word ^ 0x22222222
  const backslash = word ^ 0x5c5c5c5c
  const found =
    ((word - 0x20202020) & ~word) | ((quote - 0x01010101) & ~quote) | ((backslash - 0x01010101) & ~backslash)
  return (found & 0x80808080) !== 0
}
