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
const FORMULA = /^[=+\-@\t\r]/

/**
 * Rows as CSV (RFC 4180), in the form of the gateway's: NULL is an empty cell, an empty text is `""`, and what is no text is as in JSON.
 * `neutral`: a text that a spreadsheet would take for a formula gets an apostrophe in front. Numbers stay as they are.
 * @param {readonly string[]} names
 * @param {readonly Readonly<Record<string, unknown>>[]} rows
 * @param {{ neutral: boolean }} how
 */
export function csvOf(names, rows, { neutral }) {
  const cell = (/** @type {unknown} */ value) => {
    if (value === null || value === undefined) return ''
    const isRisky = neutral && typeof value === 'string' && FORMULA.test(value)
    return quoted(isRisky ? `'${value}` : textOf(value))
  }
  const lines = rows.map((row) => names.map((name) => cell(row[name])))
  return [names.map(cell), ...lines].map((cells) => `${cells.join()}\r\n`).join('')
}

/** @param {string} text */
const quoted = (text) => (text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)
