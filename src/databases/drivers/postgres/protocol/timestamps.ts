import { copy, type Place } from '#databases/drivers/postgres/protocol/byte-copies.ts'

/** `2026-01-31 00:00:00.5` → `2026-01-31T00:00:00.5`; other dates stay as the database writes them. */
export function copyTimestamp(data: Place, from: number, end: number, out: Place, start: number): number {
  const at = copy(data, from, end, out, start)
  if (isCommonDate(data.bytes, from, end)) out.bytes[start + 10] = 0x54 // T
  return at
}

/** `2026-01-31 00:00:00.5+00` → `2026-01-31T00:00:00.5Z`; connections run in UTC. */
export function copyInstant(data: Place, from: number, end: number, out: Place, start: number): number {
  const at = copyTimestamp(data, from, end, out, start)
  if (!isCommonDate(data.bytes, from, end) || data.bytes[end - 3] !== 0x2b) return at
  out.bytes[at - 3] = 0x5a // Z
  return at - 2
}

/** Four digits of year, a space before the time, no ` BC`. */
const isCommonDate = (data: Buffer, from: number, end: number): boolean =>
  data[from + 4] === 0x2d && data[from + 10] === 0x20 && data[end - 1] !== 0x43
