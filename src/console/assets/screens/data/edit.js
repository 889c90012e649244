import { ApiError, call } from '../../api.js'
import { named, whichOf } from './described.js'
import { sentFor } from './edit-types.js'

/**
 * @typedef {import('./edit-types.js').Column} Column
 * @typedef {{ client: string, schema: string, table: string }} Place
 * @typedef {{ constraint_name: string, columns: readonly string[], schema: string, table: string, target: readonly string[] }} Reference
 * @typedef {{ columns: readonly Column[] | undefined, key: readonly string[], references: readonly Reference[], isLive: boolean, isText: boolean }} Structure
 * `columns`: undefined where the caller may not read the structure. `isText`: rows are read and compared as texts, as the database writes them.
 * @typedef {Readonly<Record<string, string | null>>} Row
 */

/** Columns that a write answers, of the 256 that a request may name. */
const ANSWERED = 200

/** What the console finds before, or after, the service has answered. @param {string} code @param {string} message */
export const refused = (code, message) =>
  new ApiError({ status: 0, code, message, hint: 'Nothing was written.' })

/** @param {string} name */
const quoted = (name) => `"${name.replace(/["\\]/g, '\\$&')}"`

/** A column as the database writes it. @param {string} name */
export const asText = (name) => `${quoted(name)}::text`

/** Rows of one key have one text. @param {readonly string[]} key @param {Row} row */
export const keyOf = (key, row) => JSON.stringify(key.map((name) => row[name]))

/** How messages call a row: `id 5`. @param {readonly string[]} key @param {Row} row */
export const nameOf = (key, row) => key.map((name) => `${name} ${row[name]}`).join(', ')

/**
 * Columns, key and foreign keys of a table. Who may read rows may lack the right to read the structure.
 * @param {Place} place
 * @param {AbortSignal} signal
 * @returns {Promise<Structure>}
 */
export async function readStructure({ client, schema, table }, signal) {
  const asked = { client, signal, query: whichOf({ client, schema, table }) }
  const [columns, constraints, live] = await Promise.all([
    call('/schema/columns', asked).then((answer) => answer.columns, unlessAllowed),
    call('/schema/constraints', asked).then((answer) => answer.constraints, unlessAllowed),
    call(`/management/tables/${encodeURIComponent(table)}/realtime`, {
      ...{ client, signal, query: { schema_name: schema } },
    }).then(({ data }) => data.enabled, whyNotLive),
  ])
  /** @type {readonly any[]} */
  const known = constraints ?? []
  return {
    columns,
    key: known.find(({ constraint_type: type }) => type === 'PRIMARY KEY')?.columns ?? [],
    references: known
      .filter(({ references }) => references !== null)
      .map(
        ({ constraint_name, columns: own, references: { table_schema, table_name, columns: target } }) => ({
          ...{ constraint_name, columns: own, schema: table_schema, table: table_name, target },
        }),
      ),
    isLive: live === true,
    isText: columns !== undefined && live !== 'no driver',
  }
}

/** @param {unknown} error @returns {undefined} */
function unlessAllowed(error) {
  if (!(error instanceof ApiError) || error.status !== 403) throw error
}

/** @param {unknown} error */
function whyNotLive(error) {
  if (!(error instanceof ApiError)) throw error
  return error.code === 'unsupported_by_driver' ? 'no driver' : false
}

/** The row of this key. @param {readonly string[]} key @param {Row} row */
export const hasKey = (key, row) => key.map((column) => ({ column, operator: 'eq', value: row[column] }))

/**
 * The column has this text. By the text, since some types have no equality, and others call different texts equal.
 * @param {string} column
 * @param {string | null} value
 */
export const hasText = (column, value) =>
  value === null ? { column, operator: 'is', value } : { column, operator: 'eq', value, column_cast: 'text' }

/**
 * The row as it is now, if it is there.
 * @param {Place} place
 * @param {Structure} structure
 * @param {Row} row
 * @param {readonly string[]} names
 * @returns {Promise<Row | undefined>}
 */
export async function readRow(place, { key }, row, names) {
  const body = { ...named(place), columns: textsOf(key, names), conditions: hasKey(key, row), limit: 1 }
  const { data } = await call('/gateway/fetch', { method: 'POST', client: place.client, body })
  return data[0]
}

/** @param {readonly string[]} key @param {readonly string[]} names */
const textsOf = (key, names) => [...new Set([...key, ...names])].map(asText)

/**
 * Writes one value, if the row has its former text still. Undefined: it has not, and nothing was written.
 * @param {Place} place
 * @param {Structure} structure
 * @param {{ row: Row, column: Column, from: string | null, to: string | null, names: readonly string[] }} change `names`: columns to answer.
 * @returns {Promise<Row | undefined>}
 */
export async function writeValue(place, { key }, { row, column, from, to, names }) {
  const name = column.column_name
  const body = {
    ...named(place),
    set: { [name]: sentFor(column, to) },
    conditions: [...hasKey(key, row), hasText(name, from)],
    columns: textsOf(key, [name, ...names]),
  }
  const { data, affected_rows: affected } = await call('/gateway/update', {
    ...{ method: 'POST', client: place.client, body },
  })
  return affected === 0 ? undefined : { ...row, ...data[0] }
}

/** The columns that writes answer. @param {Structure} structure */
export const answered = ({ columns = [] }) => columns.slice(0, ANSWERED).map(({ column_name }) => column_name)

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
