import { copy, type Place, writeBool } from '#databases/drivers/postgres/protocol/byte-copies.ts'
import { FORMAT, type Format } from '#databases/drivers/postgres/protocol/column-formats.ts'
import { writeEscape } from '#databases/drivers/postgres/protocol/json-escapes.ts'
import { copyInstant, copyTimestamp } from '#databases/drivers/postgres/protocol/timestamps.ts'

export function writeJsonValue(
  format: Format,
  data: Place,
  from: number,
  end: number,
  out: Place,
  at: number,
): number {
  switch (format) {
    case FORMAT.raw:
    case FORMAT.json:
    case FORMAT.relation:
      return copy(data, from, end, out, at)
    case FORMAT.bool:
      return writeBool(data, from, out, at)
    case FORMAT.real:
      return isNumber(data.bytes, from) ? copy(data, from, end, out, at) : writeText(data, from, end, out, at)
    case FORMAT.timestamp:
      return quoted(copyTimestamp, data, from, end, out, at)
    case FORMAT.instant:
      return quoted(copyInstant, data, from, end, out, at)
    default:
      return writeText(data, from, end, out, at)
  }
}

/** False for `NaN`, `Infinity` and `-Infinity`, which are not JSON numbers. */
function isNumber(data: Buffer, from: number): boolean {
  const first = data[from] === 0x2d ? data[from + 1] : data[from]
  return first !== 0x4e && first !== 0x49
}

/** A text that needs no escapes. */
function quoted(
  write: typeof copyTimestamp,
  data: Place,
  from: number,
  end: number,
  out: Place,
  start: number,
): number {
  out.bytes[start] = 0x22
  const at = write(data, from, end, out, start + 1)
  out.bytes[at] = 0x22
  return at + 1
}

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

export const needsEscape = (byte: number): boolean => byte < 0x20 || byte === 0x22 || byte === 0x5c

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
