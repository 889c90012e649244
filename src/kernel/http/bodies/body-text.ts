/**
 * The text of valid UTF-8, read in parts. Node keeps a text of 1 MB or more outside of V8's heap, where only a collection of the whole heap
 * frees it: with bodies of 2 MB, half of their processor time were such collections.
 */
export function bodyText(bytes: Buffer): string {
  let text = ''
  for (let from = 0; from < bytes.length; ) {
    const end = startOfCharacter(bytes, from + PART)
    text += bytes.toString('utf8', from, end)
    from = end
  }
  return text
}

const PART = 1_000_000

/** The position at or before `at` where a character of valid UTF-8 begins. */
function startOfCharacter(bytes: Buffer, at: number): number {
  let start = Math.min(at, bytes.length)
  while (start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start--
  return start
}
