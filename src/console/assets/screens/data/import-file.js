import { parse } from '../../api.js'
import { counted } from '../../values.js'

/**
 * Reads a file of rows piece by piece, so that its size is no matter.
 * @typedef {'csv' | 'json'} Format
 * @typedef {{ format: Format, delimiter: string, emptyIsNull: boolean }} Reading
 * @typedef {readonly (string | null)[]} Cells cells of a CSV row; null for an empty one without quotes
 */

/** What a file says of itself, by its name and its beginning. @param {string} name @param {string} beginning @returns {{ format: Format, delimiter: string }} */
export function guess(name, beginning) {
  const isJson = /\.(json|jsonl|ndjson)$/i.test(name) || /^\s*[[{]/.test(beginning)
  const [line = ''] = beginning.split('\n', 1)
  const count = (/** @type {string} */ one) => line.split(one).length
  const [delimiter = ','] = [',', ';', '\t'].sort((one, other) => count(other) - count(one))
  return { format: isJson ? 'json' : 'csv', delimiter }
}

/**
 * The text of a file. `onProgress` gets the bytes so far.
 * @param {Blob} file
 * @param {(bytes: number) => void} [onProgress]
 * @returns {AsyncGenerator<string>}
 */
export async function* textsOf(file, onProgress = () => {}) {
  const reader = file.stream().getReader()
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let bytes = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      bytes += value.length
      onProgress(bytes)
      yield decoder.decode(value, { stream: true })
    }
    yield decoder.decode()
  } catch (error) {
    throw error instanceof TypeError ? new Error('The file is not text in UTF-8.') : error
  } finally {
    await reader.cancel()
  }
}

/**
 * The rows of CSV, the line of names first. A line without anything is none.
 * @param {AsyncIterable<string>} texts
 * @param {string} delimiter
 * @returns {AsyncGenerator<Cells>}
 */
export async function* csvRows(texts, delimiter) {
  /** @type {(string | null)[]} */
  let cells = []
  let cell = ''
  /** The cell has begun with a quote; it is within its quotes; the last character there was a quote, which ends it or is the first of two. */
  let [isQuoted, isInside, mayEnd] = [false, false, false]
  const endCell = () => {
    cells.push(cell === '' && !isQuoted ? null : cell)
    cell = ''
    isQuoted = false
  }
  const isRow = () => cells.length > 1 || cells[0] !== null
  for await (const text of texts)
    for (const character of text) {
      if (isInside && !mayEnd) {
        if (character === '"') mayEnd = true
        else cell += character
      } else if (mayEnd && character === '"') {
        cell += character
        mayEnd = false
      } else {
        isInside = mayEnd = false
        if (character === '"' && cell === '' && !isQuoted) isInside = isQuoted = true
        else if (character === delimiter) endCell()
        else if (character === '\n') {
          endCell()
          if (isRow()) yield cells
          cells = []
        } else if (character !== '\r') cell += character
      }
    }
  if (isInside && !mayEnd)
    throw new Error('The quotes of the file do not fit: the last one that opens is never closed.')
  endCell()
  if (isRow()) yield cells
}

/** @param {Cells} cells @param {boolean} emptyIsNull */
export const csvLine = (cells, emptyIsNull) =>
  cells
    .map((cell) => (cell === null ? (emptyIsNull ? '' : '""') : `"${cell.replaceAll('"', '""')}"`))
    .join(',')

/**
 * The rows of JSON as their text: of an array, or one after another.
 * @param {AsyncIterable<string>} texts
 * @returns {AsyncGenerator<string>}
 */
export async function* jsonRows(texts) {
  let row = ''
  let depth = 0
  /** Of an array that holds the rows. */
  let hasBegun = false
  let [isText, isEscaped] = [false, false]
  for await (const text of texts)
    for (const character of text) {
      if (depth === 0) {
        if (/\s/.test(character) || character === ',') continue
        if (!hasBegun && character === '[') {
          hasBegun = true
          continue
        }
        if (character === ']' && hasBegun) continue
        if (character !== '{') throw new Error(`The file holds something else than rows: ${character}`)
        hasBegun = true
      }
      // A line break is not part of a text, which has it escaped.
      row += character === '\n' || character === '\r' ? ' ' : character
      if (isText) {
        if (isEscaped) isEscaped = false
        else if (character === '\\') isEscaped = true
        else if (character === '"') isText = false
      } else if (character === '"') isText = true
      else if (character === '{' || character === '[') depth++
      else if (character === '}' || character === ']') depth--
      if (depth === 0) {
        yield row
        row = ''
      }
    }
  if (depth > 0) throw new Error('The file ends within a row.')
}

/** Rows and characters that are sent together. */
const [ROWS, CHARACTERS] = [5_000, 1_000_000]

/** @typedef {{ first: number, count: number, content: string }} Batch `first`: the number of its first row in the file, from 1 */

/**
 * The rows of a file as bodies of an import, each with the names of its columns.
 * @param {Blob} file
 * @param {Reading} reading
 * @param {number} from the number of the first row
 * @param {(bytes: number) => void} onProgress
 * @returns {AsyncGenerator<Batch>}
 */
export async function* batchesOf(file, { format, delimiter, emptyIsNull }, from, onProgress) {
  const texts = textsOf(file, onProgress)
  let head = ''
  let first = from
  let number = 0
  /** @type {string[]} */
  let lines = []
  let characters = 0
  const take = () => {
    const batch = { first, count: lines.length, content: `${head}${lines.join('\n')}\n` }
    first += lines.length
    lines = []
    characters = 0
    return batch
  }
  for await (const row of format === 'csv' ? csvRows(texts, delimiter) : jsonRows(texts)) {
    const line = typeof row === 'string' ? row : csvLine(row, emptyIsNull)
    if (format === 'csv' && head === '') {
      head = `${line}\n`
      continue
    }
    if (++number < from) continue
    lines.push(line)
    characters += line.length
    if (lines.length >= ROWS || characters >= CHARACTERS) yield take()
  }
  if (lines.length > 0) yield take()
}

/**
 * The names of the columns, and the first rows.
 * @param {Blob} file
 * @param {Omit<Reading, 'emptyIsNull'>} reading
 * @returns {Promise<{ names: readonly string[], rows: readonly Readonly<Record<string, unknown>>[] }>}
 */
export async function previewOf(file, { format, delimiter }) {
  /** @type {Cells | undefined} */
  let names
  /** @type {Record<string, unknown>[]} */
  const rows = []
  const texts = textsOf(file)
  for await (const row of format === 'csv' ? csvRows(texts, delimiter) : jsonRows(texts)) {
    if (typeof row === 'string') rows.push(parse(row))
    else if (names === undefined) names = row.map((name) => name?.trim() ?? '')
    else rows.push(Object.fromEntries(row.map((cell, at) => [names?.[at] ?? `column ${at + 1}`, cell])))
    if (rows.length === PREVIEWED) break
  }
  const found = names?.map((name) => name ?? '') ?? [...new Set(rows.flatMap((row) => Object.keys(row)))]
  if (found.length > COLUMNS)
    throw new Error(`The file has ${counted(found.length)} columns, and a table at most ${counted(COLUMNS)}.`)
  return { names: found, rows }
}

const PREVIEWED = 10
/** Of a table of PostgreSQL. */
const COLUMNS = 1_600
