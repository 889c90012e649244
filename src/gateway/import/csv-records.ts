import { fail } from '../errors.ts'

/** A record of a CSV file: its cells, and the line of the file where it begins. An empty cell without quotes is null. */
export type CsvRecord = { readonly line: number; readonly cells: readonly (string | null)[] }

type CsvOptions = {
  readonly delimiter: string
  /** The most characters of a record. */
  readonly maxLength: number
}

/** Reads a file as it arrives (RFC 4180, and lines that end with LF alone). A record that has not ended is never read. */
export async function* csvRecords(
  texts: AsyncIterable<string>,
  options: CsvOptions,
): AsyncGenerator<readonly CsvRecord[]> {
  const reader = createCsvReader(options)
  for await (const text of texts) yield reader.push(text)
  yield reader.end()
}

/** The text of a file in UTF-8, without a byte order mark. */
export async function* textsOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decoded = (chunk?: Buffer): string => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true })
    } catch {
      throw fail('invalid_file', { message: 'The file is not UTF-8', hint: 'Save it in that encoding.' })
    }
  }
  for await (const chunk of chunks) yield decoded(chunk)
  yield decoded()
}

/** States between two characters. In PLAIN and QUOTED a cell has begun; CLOSED follows its second quote, RETURNED the carriage return after that. */
const [START, PLAIN, QUOTED, CLOSED, RETURNED] = [0, 1, 2, 3, 4] as const
type State = typeof START | typeof PLAIN | typeof QUOTED | typeof CLOSED | typeof RETURNED

function createCsvReader({ delimiter, maxLength }: CsvOptions) {
  const delimiterCode = delimiter.charCodeAt(0)
  let state: State = START
  let [line, begun, quotedAt] = [1, 1, 1]
  let cells: (string | null)[] = []
  let value = ''
  /** Characters of the record so far. */
  let length = 0
  let records: CsvRecord[] = []

  function endCell(cell: string | null): void {
    length += CELL
    cells.push(cell)
    value = ''
    state = START
  }
  function endRecord(): void {
    records.push({ line: begun, cells })
    cells = []
    length = 0
    begun = line
  }
  const plainCell = (text: string): string | null => (text === '' ? null : text)
  const withoutReturn = (text: string): string => (text.endsWith('\r') ? text.slice(0, -1) : text)

  /** The state functions read from `at` and return the position up to which they have read. */
  function readPlain(text: string, at: number): number {
    let end = at
    for (; end < text.length; end++) {
      const code = text.charCodeAt(end)
      if (code === delimiterCode || code === LINE) break
    }
    value += text.slice(at, end)
    length += end - at
    if (end === text.length) return end
    if (text.charCodeAt(end) === LINE) {
      line++
      endCell(plainCell(withoutReturn(value)))
      endRecord()
    } else endCell(plainCell(value))
    return end + 1
  }

  function readQuoted(text: string, at: number): number {
    const quote = text.indexOf('"', at)
    const end = quote < 0 ? text.length : quote
    const part = text.slice(at, end)
    value += part
    length += part.length
    line += linesIn(part)
    if (quote < 0) return end
    state = CLOSED
    return end + 1
  }

  function readClosed(text: string, at: number): number {
    const code = text.charCodeAt(at)
    if (code === QUOTE && state === CLOSED) {
      value += '"'
      state = QUOTED
    } else if (code === delimiterCode && state === CLOSED) endCell(value)
    else if (code === RETURN && state === CLOSED) state = RETURNED
    else if (code === LINE) {
      line++
      endCell(value)
      endRecord()
    } else
      throw malformed(
        line,
        'after the closing quote of a cell there is neither a delimiter nor the end of the line',
      )
    return at + 1
  }

  function readStart(text: string, at: number): number {
    if (text.charCodeAt(at) !== QUOTE) {
      state = PLAIN
      return at
    }
    state = QUOTED
    quotedAt = line
    return at + 1
  }

  function taken(): readonly CsvRecord[] {
    const found = records
    records = []
    return found
  }

  return {
    push(text: string): readonly CsvRecord[] {
      for (let at = 0; at < text.length; ) {
        if (state === START) at = readStart(text, at)
        else if (state === PLAIN) at = readPlain(text, at)
        else if (state === QUOTED) at = readQuoted(text, at)
        else at = readClosed(text, at)
      }
      if (length > maxLength) throw tooLong(begun, maxLength)
      return taken()
    },
    end(): readonly CsvRecord[] {
      if (state === QUOTED) throw malformed(quotedAt, 'the quote that opens a cell there is never closed')
      if (state === PLAIN) endCell(plainCell(withoutReturn(value)))
      else if (state === CLOSED || state === RETURNED) endCell(value)
      else if (cells.length > 0) endCell(null)
      if (cells.length > 0) endRecord()
      return taken()
    },
  }
}

/** A cell counts as this many characters: it takes memory even if it is empty, and a record of delimiters alone would have no end. */
const CELL = 16

const [LINE, RETURN, QUOTE] = [0x0a, 0x0d, 0x22]

function linesIn(text: string): number {
  let lines = 0
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines++
  return lines
}

const malformed = (line: number, why: string) =>
  fail('invalid_file', { message: `Line ${line} is not CSV: ${why}`, details: { line } })

const tooLong = (line: number, maximum: number) =>
  fail('invalid_file', {
    message: `The row that begins in line ${line} has more than ${maximum} characters (limits.body_bulk)`,
    hint: 'Is the closing quote of a cell missing?',
    details: { line, maximum },
  })
