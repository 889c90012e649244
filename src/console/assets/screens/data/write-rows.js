import { call } from '../../api.js'
import { named } from './described.js'
import { hasKey, hasText, sentFor, textsOf } from './edit.js'

/**
 * @typedef {import('./edit.js').Place} Place
 * @typedef {import('./edit.js').Structure} Structure
 * @typedef {import('./edit.js').Row} Row
 */

/** Columns that a write answers, of the 256 that a request may name. */
const ANSWERED = 200

/** The columns that writes answer. @param {Structure} structure */
const answered = ({ columns = [] }) => columns.slice(0, ANSWERED).map(({ column_name }) => column_name)

/** Whether a row is answered whole, so that it can be written again. @param {Structure} structure */
export const isWhole = ({ columns = [] }) => columns.length <= ANSWERED

/**
 * @param {Place} place
 * @param {Structure} structure
 * @param {readonly Row[]} rows columns that are not named have their defaults
 * @returns {Promise<readonly Row[]>} as they were written
 */
export async function insertRows(place, structure, rows) {
  const { columns = [], key } = structure
  const typed = new Map(columns.map((column) => [column.column_name, column]))
  const values = rows.map((row) =>
    Object.fromEntries(
      Object.entries(row).flatMap(([name, text]) => {
        const column = typed.get(name)
        // The database computes the others.
        return column?.is_writable ? [[name, sentFor(column, text)]] : []
      }),
    ),
  )
  const body = { ...named(place), insert_body: values, columns: textsOf(key, answered(structure)) }
  const { data } = await call('/gateway/insert', { method: 'POST', client: place.client, body })
  return data
}

/** Characters of a value that is compared before its row is deleted. */
const COMPARED = 1_000

/**
 * Deletes those rows, in one transaction, that are as they are shown.
 * @param {Place} place
 * @param {Structure} structure
 * @param {readonly Row[]} rows
 * @returns {Promise<readonly Row[]>} the deleted ones
 */
export async function deleteRows(place, structure, rows) {
  const { key } = structure
  const columns = textsOf(key, answered(structure))
  const operations = rows.map((row, index) => ({
    ...{ id: String(index), kind: 'delete' },
    payload: { ...named(place), columns, conditions: [...hasKey(key, row), ...isAsShown(key, row)] },
  }))
  const { data } = await call('/gateway/transaction', {
    ...{ method: 'POST', client: place.client, body: { operations } },
  })
  return data.results.flatMap((/** @type {{ data: readonly Row[] }} */ result) => result.data)
}

/** Of 100 conditions that a request may have. @param {readonly string[]} key @param {Row} row */
const isAsShown = (key, row) =>
  Object.entries(row)
    .filter(([name, text]) => !key.includes(name) && (text?.length ?? 0) <= COMPARED)
    .slice(0, 100 - key.length)
    .map(([name, text]) => hasText(name, text))
