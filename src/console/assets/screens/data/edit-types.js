import { parse } from '../../api.js'

/**
 * A column as `GET /schema/columns` describes it.
 * @typedef {{ column_name: string, data_type: string, column_default: string | null, is_nullable: 'YES' | 'NO', base_type: string, is_writable: boolean, enum_values: readonly string[] | null }} Column
 */

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
