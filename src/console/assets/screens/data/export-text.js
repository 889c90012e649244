import { textOf } from '../../values.js'

/** @typedef {Readonly<Record<string, unknown>>} Values */

/** What a spreadsheet takes for a formula. */
const FORMULA = /^[=+\-@\t\r]/

/**
 * Lines of CSV (RFC 4180) as the gateway writes them: NULL is an empty cell, the empty text is `""`.
 * @param {readonly string[]} names
 * @param {readonly Values[]} rows
 * @param {boolean} isNeutral texts that a spreadsheet would take for formulas begin with an apostrophe
 */
export const csvOf = (names, rows, isNeutral) =>
  rows.map((row) => line(names.map((name) => cellOf(row[name], isNeutral)))).join('')

/** @param {readonly string[]} names @param {boolean} isNeutral */
export const csvHead = (names, isNeutral) => line(names.map((name) => cellOf(name, isNeutral)))

/** @param {readonly string[]} cells */
const line = (cells) => `${cells.join()}\r\n`

/** @param {unknown} value @param {boolean} isNeutral */
function cellOf(value, isNeutral) {
  if (value === null || value === undefined) return ''
  // Numbers are no texts, so that a negative one stays a number.
  const text = isNeutral && typeof value === 'string' && FORMULA.test(value) ? `'${value}` : textOf(value)
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Rows of a list of JSON, with every digit. @param {readonly Values[]} rows @param {boolean} isFirst */
export const jsonOf = (rows, isFirst) =>
  rows.map((row, index) => `${isFirst && index === 0 ? '[\n' : ',\n'}${JSON.stringify(row)}`).join('')
