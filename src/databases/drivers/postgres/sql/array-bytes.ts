/**
 * The literal of a one-dimensional array, in UTF-8. It is written as bytes, because joined strings are three objects a value, which live
 * long enough for the garbage collector to copy them.
 */
export function arrayBytes<T>(
  items: readonly T[],
  textOf: (item: T) => string | null,
  separator = ',',
): Buffer {
  const between = separator.charCodeAt(0)
  const out: Out = { bytes: Buffer.allocUnsafe(FIRST), at: 0, share: 0 }
  out.bytes[out.at++] = OPEN
  for (let index = 0; index < items.length; index++) {
    if (index > 0) out.bytes[out.at++] = between
    const text = textOf(items[index] as T) // the index is below the length
    out.share = (index + 1) / items.length
    if (text === null) writeNative(out, 'NULL')
    else if (text.length > SHORT) writeNative(out, `"${escaped(text)}"`)
    else writeShort(out, text)
  }
  out.bytes[out.at++] = CLOSE
  return out.bytes.subarray(0, out.at)
}

/** `share`: of the items that are written. */
type Out = { bytes: Buffer; at: number; share: number }

/** Bytes that are reserved first. */
const FIRST = 1_024
/** The first items may be longer than the others. */
const MARGIN = 524_288
/** A longer text is written faster by a call. */
const SHORT = 64

function writeShort(out: Out, text: string): void {
  // A UTF-16 unit has three bytes at most, or two with its backslash.
  reserve(out, 3 * text.length)
  out.bytes[out.at++] = QUOTE
  const { bytes } = out
  let { at } = out
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code >= 0x80) {
      at += bytes.write(escaped(text.slice(index)), at)
      break
    }
    if (code === QUOTE || code === BACKSLASH) bytes[at++] = BACKSLASH
    bytes[at++] = code
  }
  bytes[at++] = QUOTE
  out.at = at
}

function writeNative(out: Out, text: string): void {
  reserve(out, Buffer.byteLength(text))
  out.at += out.bytes.write(text, out.at)
}

const escaped = (text: string): string => (/["\\]/.test(text) ? text.replace(/["\\]/g, '\\$&') : text)

/** Room for so many bytes, and for quotes, comma and bracket. The items so far show how many bytes all of them need. */
function reserve(out: Out, bytes: number): void {
  const needed = out.at + bytes + 4
  if (needed <= out.bytes.length) return
  const room = Buffer.allocUnsafe(Math.ceil(Math.min((1.1 * needed) / out.share, 2 * needed + MARGIN)))
  out.bytes.copy(room, 0, 0, out.at)
  out.bytes = room
}

const [OPEN, CLOSE, QUOTE, BACKSLASH] = [0x7b, 0x7d, 0x22, 0x5c]
