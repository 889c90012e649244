import { textOf } from '../values.js'

/**
 * Hands a file to the person. Nothing of it goes to the network.
 * @param {string} name
 * @param {Blob} content
 */
export function saveFile(name, content) {
  const address = URL.createObjectURL(content)
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  // By then the browser has it.
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
}

/** What a spreadsheet would run. */
const FORMULA = /^[=+\-@\t\r\n]/

/**
 * `neutral`: a text that a spreadsheet would take for a formula gets an apostrophe in front. Numbers stay as they are. `json`: names of columns
 * whose values are JSON, where a text has its quotes.
 * @typedef {{ neutral: boolean, json: ReadonlySet<string> }} CsvForm
 */

/** The line of names. @param {readonly string[]} names @param {CsvForm} how */
export const csvHead = (names, { neutral }) => line(names.map((name) => cellOf(name, neutral)))

/**
 * Lines of CSV (RFC 4180) as the gateway writes them: NULL is an empty cell, an empty text is `""`, and what is no text is as in JSON.
 * @param {readonly string[]} names
 * @param {readonly Readonly<Record<string, unknown>>[]} rows
 * @param {CsvForm} how
 */
export const csvOf = (names, rows, { neutral, json }) =>
  rows
    .map((row) =>
      line(
        names.map((name) =>
          json.has(name) && typeof row[name] === 'string'
            ? quoted(JSON.stringify(row[name]))
            : cellOf(row[name], neutral),
        ),
      ),
    )
    .join('')

/** @param {readonly string[]} cells */
const line = (cells) => `${cells.join()}\r\n`

/** @param {unknown} value @param {boolean} neutral */
function cellOf(value, neutral) {
  if (value === null || value === undefined) return ''
  const isRisky = neutral && typeof value === 'string' && FORMULA.test(value)
  return quoted(isRisky ? `'${value}` : textOf(value))
}

/** @param {string} text */
const quoted = (text) => (text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)

/** Rows of a list of JSON, with every digit. @param {readonly Readonly<Record<string, unknown>>[]} rows @param {boolean} isFirst */
export const jsonOf = (rows, isFirst) =>
  rows.map((row, index) => `${isFirst && index === 0 ? '[\n' : ',\n'}${JSON.stringify(row)}`).join('')
