/** Writes the JSON escape of a byte and returns the next position. */
export function writeEscape(byte: number, out: Buffer, start: number): number {
  let at = start
  out[at++] = 0x5c
  const short = SHORT_ESCAPES.get(byte)
  if (short !== undefined) {
    out[at++] = short
    return at
  }
  return at + out.write(`u00${byte.toString(16).padStart(2, '0')}`, at, 'latin1')
}

/** RFC 8259, section 7. */
const SHORT_ESCAPES = new Map([
  [0x22, 0x22],
  [0x5c, 0x5c],
  [0x08, 0x62],
  [0x0c, 0x66],
  [0x0a, 0x6e],
  [0x0d, 0x72],
  [0x09, 0x74],
])
