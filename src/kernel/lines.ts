/** A line of a file: its number, counted from 1, with its text, or with the reason why it has none ("is not UTF-8"). */
export type Line = { readonly number: number } & ({ readonly text: string } | { readonly problem: string })

/** Enough for the facts of a user. */
const MAX_LINE_BYTES = 64 * 1_024

const NEWLINE = 0x0a

/**
 * The lines of a stream. At most one chunk and one line are in memory. A byte order mark and carriage returns are removed; empty
 * lines are skipped but counted.
 */
export async function* linesOf(
  chunks: AsyncIterable<Buffer>,
  maxBytes = MAX_LINE_BYTES,
): AsyncGenerator<Line> {
  let number = 0
  let parts: Buffer[] = []
  let size = 0
  const append = (bytes: Buffer) => {
    size += bytes.length
    // A line that is too long is reported by its number only, so its bytes are dropped.
    if (size > maxBytes) parts = []
    else if (bytes.length > 0) parts.push(bytes)
  }
  const endLine = (): Line | undefined => {
    number++
    const line =
      size > maxBytes ? { problem: `is longer than ${maxBytes / 1_024} KiB` } : decode(Buffer.concat(parts))
    parts = []
    size = 0
    return 'text' in line && line.text === '' ? undefined : { number, ...line }
  }
  for await (const chunk of chunks) {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      append(chunk.subarray(from, end))
      from = end + 1
      const line = endLine()
      if (line !== undefined) yield line
    }
    append(chunk.subarray(from))
  }
  const last = size === 0 ? undefined : endLine()
  if (last !== undefined) yield last
}

const UTF8 = new TextDecoder('utf-8', { fatal: true })

/** The decoder removes a byte order mark. */
function decode(bytes: Buffer): { text: string } | { problem: string } {
  try {
    return { text: UTF8.decode(bytes).trim() }
  } catch {
    return { problem: 'is not UTF-8' }
  }
}
