import { copy, type Place, writeBool } from '#databases/drivers/postgres/protocol/byte-copies.ts'
import { FORMAT, type Format } from '#databases/drivers/postgres/protocol/column-formats.ts'
import { copyInstant, copyTimestamp } from '#databases/drivers/postgres/protocol/timestamps.ts'

/** Writes a value as a cell of CSV (RFC 4180). NULL is an empty cell, so an empty text is `""`. Numbers and dates have the form of JSON answers. */
export function writeCell(
  format: Format,
  data: Place,
  from: number,
  end: number,
  out: Place,
  at: number,
): number {
  switch (format) {
    case FORMAT.raw:
    case FORMAT.real:
      return copy(data, from, end, out, at)
    case FORMAT.bool:
      return writeBool(data, from, out, at)
    case FORMAT.timestamp:
      return copyTimestamp(data, from, end, out, at)
    case FORMAT.instant:
      return copyInstant(data, from, end, out, at)
    case FORMAT.relation:
      return writeQuoted(data, from, end, out, at, LINE)
    default:
      return writeText(data, from, end, out, at)
  }
}

/** Copies four bytes at a time, and begins again with quotes when one of them needs quotes around the cell. */
function writeText(data: Place, from: number, end: number, out: Place, start: number): number {
  if (from === end) return writeQuoted(data, from, end, out, start)
  let at = start
  let read = from
  for (; read + 4 <= end; read += 4, at += 4) {
    const word = data.view.getInt32(read, true)
    if (someNeedsQuotes(word)) return writeQuoted(data, from, end, out, start)
    out.view.setInt32(at, word, true)
  }
  for (; read < end; read++) {
    const byte = data.bytes[read] as number // it is below end
    if (needsQuotes(byte)) return writeQuoted(data, from, end, out, start)
    out.bytes[at++] = byte
  }
  return at
}

/** `omitted` is a byte that is left out: the line breaks between the rows of a relation. */
function writeQuoted(
  { bytes }: Place,
  from: number,
  end: number,
  out: Place,
  start: number,
  omitted?: number,
): number {
  let at = start
  out.bytes[at++] = QUOTE
  for (let read = from; read < end; read++) {
    const byte = bytes[read] as number // it is below end
    if (byte === omitted) continue
    if (byte === QUOTE) out.bytes[at++] = QUOTE
    out.bytes[at++] = byte
  }
  out.bytes[at++] = QUOTE
  return at
}

const [LINE, RETURN, QUOTE, COMMA] = [0x0a, 0x0d, 0x22, 0x2c]

const needsQuotes = (byte: number): boolean =>
  byte === QUOTE || byte === COMMA || byte === LINE || byte === RETURN

/** As `needsQuotes`, for four bytes; the test is that of `someNeedsEscape` in json-values.ts. */
function someNeedsQuotes(word: number): boolean {
  const quote = word ^ 0x22222222
  const comma = word ^ 0x2c2c2c2c
  const line = word ^ 0x0a0a0a0a
  const feed = word ^ 0x0d0d0d0d
  const found =
    ((quote - 0x01010101) & ~quote) |
    ((comma - 0x01010101) & ~comma) |
    ((line - 0x01010101) & ~line) |
    ((feed - 0x01010101) & ~feed)
  return (found & 0x80808080) !== 0
}
