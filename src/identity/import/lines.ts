/** One line of a file: its number, and its text or the problem that it has. */
export type Line = { readonly number: number } & ({ readonly text: string } | { readonly problem: string })

/** Bytes. A line holds one user; a longer line belongs to another kind of file. */
const MAX_LINE = 64 * 1_024

const NEWLINE = 0x0a

/**
 * The lines of a stream. At most one chunk and one line are in memory. A byte order mark and carriage returns are removed; empty
 * lines are skipped but counted.
 */
export async function* linesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<Line> {
  let number = 0
  let begun: Buffer[] = []
  let size = 0
  const keep = (part: Buffer) => {
    size += part.length
    // Of a line that is too long, only the length is needed.
    if (size > MAX_LINE) begun = []
    else if (part.length > 0) begun.push(part)
  }
  const finish = (): Line | undefined => {
    number++
    const line =
      size > MAX_LINE ? { problem: `is longer than ${MAX_LINE / 1_024} KiB` } : read(Buffer.concat(begun))
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

const UTF8 = new TextDecoder('utf-8', { fatal: true })

/** The decoder removes a byte order mark. */
function read(bytes: Buffer): { text: string } | { problem: string } {
  try {
    return { text: UTF8.decode(bytes).trim() }
  } catch {
    return { problem: 'is not UTF-8' }
  }
}
