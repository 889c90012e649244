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
  const reader = new CsvReader(options)
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

class CsvReader {
  readonly #delimiter: number
  readonly #maxLength: number
  #state: State = START
  #line = 1
  /** The lines where the record begins, and the last quote that opens a cell. */
  #begun = 1
  #quotedAt = 1
  #records: CsvRecord[] = []
  #cells: (string | null)[] = []
  #value = ''
  /** Characters of the record so far. */
  #length = 0

  constructor({ delimiter, maxLength }: CsvOptions) {
    this.#delimiter = delimiter.charCodeAt(0)
    this.#maxLength = maxLength
  }

  /** The records that end in the text. */
  push(text: string): readonly CsvRecord[] {
    for (let at = 0; at < text.length; ) {
      if (this.#state === START) at = this.#start(text, at)
      else if (this.#state === PLAIN) at = this.#plain(text, at)
      else if (this.#state === QUOTED) at = this.#quoted(text, at)
      else at = this.#closed(text, at)
    }
    if (this.#length > this.#maxLength) throw tooLong(this.#begun, this.#maxLength)
    return this.#taken()
  }

  /** The last record, if no line break follows it. */
  end(): readonly CsvRecord[] {
    if (this.#state === QUOTED)
      throw malformed(this.#quotedAt, 'the quote that opens a cell there is never closed')
    if (this.#state === PLAIN) this.#endCell(plainCell(withoutReturn(this.#value)))
    else if (this.#state === CLOSED || this.#state === RETURNED) this.#endCell(this.#value)
    else if (this.#cells.length > 0) this.#endCell(null)
    if (this.#cells.length > 0) this.#endRecord()
    return this.#taken()
  }

  /** Each of these reads from `at` in its state, and returns the position up to which it has read. */
  #start(text: string, at: number): number {
    if (text.charCodeAt(at) !== QUOTE) {
      this.#state = PLAIN
      return at
    }
    this.#state = QUOTED
    this.#quotedAt = this.#line
    return at + 1
  }

  #plain(text: string, at: number): number {
    const delimiter = this.#delimiter
    let end = at
    for (; end < text.length; end++) {
      const code = text.charCodeAt(end)
      if (code === delimiter || code === LINE) break
    }
    this.#value += text.slice(at, end)
    this.#length += end - at
    if (end === text.length) return end
    if (text.charCodeAt(end) === LINE) this.#endLine(plainCell(withoutReturn(this.#value)))
    else this.#endCell(plainCell(this.#value))
    return end + 1
  }

  #quoted(text: string, at: number): number {
    const quote = text.indexOf('"', at)
    const end = quote < 0 ? text.length : quote
    const part = text.slice(at, end)
    this.#value += part
    this.#length += part.length
    this.#line += linesIn(part)
    if (quote < 0) return end
    this.#state = CLOSED
    return end + 1
  }

  #closed(text: string, at: number): number {
    const code = text.charCodeAt(at)
    if (code === LINE) this.#endLine(this.#value)
    else if (this.#state === RETURNED) throw malformed(this.#line, AFTER_QUOTE)
    else if (code === QUOTE) {
      this.#value += '"'
      this.#state = QUOTED
    } else if (code === this.#delimiter) this.#endCell(this.#value)
    else if (code === RETURN) this.#state = RETURNED
    else throw malformed(this.#line, AFTER_QUOTE)
    return at + 1
  }

  #endCell(cell: string | null): void {
    this.#length += CELL
    this.#cells.push(cell)
    this.#value = ''
    this.#state = START
  }

  #endLine(cell: string | null): void {
    this.#line++
    this.#endCell(cell)
    this.#endRecord()
  }

  #endRecord(): void {
    this.#records.push({ line: this.#begun, cells: this.#cells })
    this.#cells = []
    this.#length = 0
    this.#begun = this.#line
  }

  #taken(): readonly CsvRecord[] {
    const found = this.#records
    this.#records = []
    return found
  }
}

const AFTER_QUOTE = 'after the closing quote of a cell there is neither a delimiter nor the end of the line'

const plainCell = (text: string): string | null => (text === '' ? null : text)
const withoutReturn = (text: string): string => (text.endsWith('\r') ? text.slice(0, -1) : text)

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
