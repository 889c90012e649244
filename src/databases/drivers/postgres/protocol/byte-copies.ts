/** Bytes, and a view to access four at once. */
export type Place = { readonly bytes: Buffer; readonly view: DataView }

export const placeOf = (bytes: Buffer): Place => ({
  bytes,
  view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length),
})
export const NOWHERE = placeOf(Buffer.alloc(0))

/** Copies write four bytes at once, so up to three bytes after their end, which the next copy overwrites. */
export const SLACK = 3

/** A frequently written text. */
export type Phrase = { readonly words: Int32Array; readonly length: number }

export function phrase(text: string): Phrase {
  const bytes = Buffer.from(text)
  const words = new Int32Array(Math.ceil(bytes.length / 4))
  const { view } = placeOf(Buffer.concat([bytes, Buffer.alloc(SLACK)]))
  return { words: words.map((_, index) => view.getInt32(4 * index, true)), length: bytes.length }
}

export function writePhrase({ words, length }: Phrase, out: Place, at: number): number {
  for (let index = 0; index < words.length; index++)
    out.view.setInt32(at + 4 * index, words[index] as number, true) // the index is below the length
  return at + length
}

/** `t` or `f` of the database. */
export const writeBool = ({ bytes }: Place, from: number, out: Place, at: number): number =>
  writePhrase(bytes[from] === 0x74 ? TRUE_TEXT : FALSE_TEXT, out, at)

/** A loop is faster than Buffer.copy for less than some hundred bytes, which is most values. */
export function copy(from: Place, start: number, end: number, out: Place, at: number): number {
  const length = end - start
  if (length > 1024 || start + length + SLACK > from.bytes.length)
    return at + from.bytes.copy(out.bytes, at, start, end)
  for (let offset = 0; offset < length; offset += 4)
    out.view.setInt32(at + offset, from.view.getInt32(start + offset, true), true)
  return at + length
}

const TRUE_TEXT = phrase('true')
const FALSE_TEXT = phrase('false')
