import { ApiError, call, parse } from '../../api.js'
import { holdsTable } from '../../session.js'
import { named, whichOf } from './described.js'

/**
 * @typedef {{ column_name: string, data_type: string, column_default: string | null, is_nullable: 'YES' | 'NO', base_type: string, is_writable: boolean, enum_values: readonly string[] | null }} Column a column as `GET /schema/columns` describes it
 * @typedef {{ client: string, schema: string, table: string }} Place
 * @typedef {{ constraint_name: string, columns: readonly string[], schema: string, table: string, target: readonly string[] }} Reference
 * @typedef {{ columns: readonly Column[] | undefined, key: readonly string[], references: readonly Reference[], isLive: boolean, isText: boolean }} Structure
 * `columns`: undefined where the caller may not read the structure. `isText`: rows are read and compared as texts, as the database writes them.
 * @typedef {Readonly<Record<string, string | null>>} Row
 */

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
export const textsOf = (key, names) => [...new Set([...key, ...names])].map(asText)

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

/**
 * Why no cell can be edited, if none can.
 * @param {import('../../session.js').Caller} caller
 * @param {Place} place
 * @param {Structure} structure
 * @returns {string | undefined}
 */
export function whyReadOnly(caller, place, { columns, key, isText }) {
  if (columns === undefined)
    return 'These rows are read only: the right management.read would tell their primary key, which an edit needs.'
  if (!isText)
    return 'These rows are read only: the driver of this client cannot compare values as text, so an edit could overwrite that of somebody else.'
  if (key.length === 0)
    return 'These rows are read only: without a primary key nothing names one row. Add one, and its rows can be edited.'
  if (!holdsTable(caller, place, 'write')) return 'These rows are read only: your roles let you read them.'
  return undefined
}

/** Characters that a line shows well. */
const LINE = 80

const NUMBERS = new Set(['int2', 'int4', 'int8', 'float4', 'float8', 'numeric', 'money', 'oid'])
const JSON_TYPES = new Set(['json', 'jsonb'])
/** Types of which the empty text is no value: an empty field means NULL. */
const NEVER_EMPTY = new Set([
  ...NUMBERS,
  ...JSON_TYPES,
  ...['bool', 'uuid', 'date', 'time', 'timetz', 'timestamp', 'timestamptz', 'interval'],
  ...['inet', 'cidr', 'macaddr', 'point', 'xid', 'pg_lsn'],
])

/** @param {Column} column */
export const isNumber = ({ base_type }) => NUMBERS.has(base_type)

/** @param {Column} column */
export const isJson = ({ base_type }) => JSON_TYPES.has(base_type)

/** @param {Column} column */
export const mayBeNull = ({ is_nullable }) => is_nullable === 'YES'

/** What a field without a character means: the empty text, or NULL where no value is empty. @param {Column} column */
export const emptyOf = ({ base_type, enum_values }) =>
  NEVER_EMPTY.has(base_type) || base_type.startsWith('_') || enum_values !== null ? null : ''

/** The values of a column that has few. @param {Column} column @returns {readonly string[] | undefined} */
export const choicesOf = ({ base_type, enum_values }) =>
  base_type === 'bool' ? ['true', 'false'] : (enum_values ?? undefined)

/**
 * Whether a text needs more than a line. A line also drops line breaks.
 * @param {Column} column
 * @param {string | null} text
 */
export const isWide = (column, text) =>
  choicesOf(column) === undefined &&
  (isJson(column) || (text !== null && (text.length > LINE || /[\r\n]/.test(text))))

/**
 * What is wrong with a text, before it is sent.
 * @param {Column} column
 * @param {string | null} text
 * @returns {string | undefined}
 */
export function problemOf(column, text) {
  if (text === null || !isJson(column)) return undefined
  try {
    if (parse(text) !== null) return undefined
    return 'The gateway writes the null of JSON as NULL. Choose NULL, or put it into an object or a list.'
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? error.message : error}`
  }
}

/**
 * The value to send for a text. The database reads it by the type of the column; JSON goes as it is, with every digit.
 * @param {Column} column
 * @param {string | null} text
 * @returns {unknown}
 */
export const sentFor = (column, text) => (text === null || !isJson(column) ? text : parse(text))

/**
 * The text of a textarea, which knows one kind of line break, with those of the text that it began with.
 * @param {string} typed
 * @param {string | null} base
 */
export function withLineBreaksOf(typed, base) {
  if (base === null || !base.includes('\r')) return typed
  if (base.replaceAll(/\r\n?/g, '\n') === typed) return base
  return /(?<!\r)\n|\r(?!\n)/.test(base) ? typed : typed.replaceAll('\n', '\r\n')
}
