import { call } from '../../api.js'
import { createStore } from '../../hooks.js'

/**
 * @typedef {{ client: string, schema: string, table: string }} At
 * @typedef {{ column_name: string, data_type: string, column_default: string | null, is_nullable: 'YES' | 'NO' }} Column
 * @typedef {{ table_schema: string, table_name: string, columns: readonly string[] }} Reference
 * @typedef {{ constraint_name: string, constraint_type: string, columns: readonly string[], references: Reference | null, definition: string }} Constraint
 * @typedef {{ isTable: boolean, rows: number, columns: readonly Column[], constraints: readonly Constraint[] }} Description
 * `rows`: estimated, -1 when the database has no estimate.
 */

/** Counts changes of the structure, so that what shows it reads again. */
export const changes = createStore(0)

export const noteChange = () => changes.set(changes.get() + 1)

/** The parameters of /schema for one table. A dot would separate the schema. @param {At} at */
export const whichOf = ({ schema, table }) =>
  table.includes('.') || table.startsWith('"')
    ? { table_name: [schema, table].map((name) => `"${name.replaceAll('"', '""')}"`).join('.') }
    : { table_name: table, table_schema: schema }

/**
 * @param {At} at
 * @param {AbortSignal} signal
 * @returns {Promise<Description>}
 */
export async function describe(at, signal) {
  const { client, schema, table } = at
  const query = whichOf(at)
  const [{ tables }, { columns }, { constraints }] = await Promise.all([
    call('/schema/tables', { client, query: { table_schema: schema }, signal }),
    call('/schema/columns', { client, query, signal }),
    call('/schema/constraints', { client, query, signal }),
  ])
  const listed = tables.find((/** @type {{ table_name: string }} */ one) => one.table_name === table)
  return {
    isTable: listed?.table_type === 'BASE TABLE',
    rows: Math.round(listed?.estimated_rows ?? -1),
    columns,
    constraints,
  }
}

/** @typedef {{ allowed_column_data_types: readonly string[], allowed_index_methods: readonly string[] }} Capabilities */

/** Types and methods that a client takes. @param {string} client @param {AbortSignal} signal @returns {Promise<Capabilities>} */
export const capabilitiesOf = async (client, signal) =>
  (await call('/management/capabilities', { client, signal })).data

/** The path of an operation on a table. @param {At} at @param {string} [rest] */
export const pathOf = ({ table }, rest = '') => `/management/tables/${encodeURIComponent(table)}${rest}`
