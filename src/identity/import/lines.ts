/** One line of a file: its number, and its text or why it has none. */
export type Line = { readonly number: number } & ({ readonly text: string } | { readonly problem: string })

/** Bytes. A line holds one user; one that is longer belongs to another kind of file. */
const LONGEST = 64 * 1_024

const NEWLINE = 0x0a

/**
 * The lines of a stream, with never more than one chunk and one line of it in memory. A byte order mark and carriage
 * returns are taken away, empty lines left out but counted.
 */
export async function* linesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<Line> {
  let number = 0
  let begun: Buffer[] = []
  let size = 0
  const keep = (part: Buffer) => {
    size += part.length
    // Of a line that is too long only its length matters.
    if (size > LONGEST) begun = []
    else if (part.length > 0) begun.push(part)
  }
  const finish = (): Line | undefined => {
    number++
    const line =
      size > LONGEST ? { problem: `is longer than ${LONGEST / 1_024} KiB` } : read(Buffer.concat(begun))
    begun = []
    size = 0
    return 'text' in line && line.text === '' ? undefined : { number, ...line }
  }
  for await (const chunk of chunks) {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      keep(chunk.subarray(from, end))
      from = end + 1
      const line = finish()
      if (line !== undefined) yield line
    }
    keep(chunk.subarray(from))
  }
  const last = size === 0 ? undefined : finish()
  if (last !== undefined) yield last
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The decoder takes the byte order mark away. */
function read(bytes: Buffer): { text: string } | { problem: string } {
  try {
    return { text: utf8.decode(bytes).trim() }
  } catch {
    return { problem: 'is not UTF-8' }
  }
}
