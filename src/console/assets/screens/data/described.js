import { call } from '../../api.js'
import { createStore } from '../../hooks.js'

/**
 * @typedef {{ client: string, schema: string, table: string }} At
 * @typedef {{ at: At, caller: import('../../session.js').Caller }} TableViewProps
 * @typedef {{ column_name: string, data_type: string, column_default: string | null, is_nullable: 'YES' | 'NO' }} Column
 * @typedef {{ table_schema: string, table_name: string, columns: readonly string[] }} Reference
 * @typedef {{ constraint_name: string, constraint_type: string, columns: readonly string[], references: Reference | null, definition: string }} Constraint
 * @typedef {{ isTable: boolean, rows: number, columns: readonly Column[], constraints: readonly Constraint[] }} Description
 * `rows`: estimated, -1 when the database has no estimate.
 */

/** Counts changes of the structure, so that what shows it reads again. */
export const changes = createStore(0)

export const noteChange = () => changes.set(changes.get() + 1)

/** In quotes where a dot would separate a schema, or quotes of its own would be no part of it. @param {string} name */
const spelled = (name) =>
  name.includes('.') || name.startsWith('"') ? `"${name.replaceAll('"', '""')}"` : name

/** The members of a request for one table. @param {At} at */
export const named = ({ table, schema }) => ({ table_name: spelled(table), schema_name: schema })

/** The parameters of /schema for one table. @param {At} at */
export const whichOf = ({ schema, table }) =>
  spelled(table) === table
    ? { table_name: table, table_schema: schema }
    : { table_name: [schema, table].map((name) => `"${name.replaceAll('"', '""')}"`).join('.') }

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

/** Changes of the structure of a table, all of them or none. @param {At} at @param {readonly object[]} operations */
export const edit = (at, operations) =>
  call(pathOf(at), {
    method: 'PATCH',
    client: at.client,
    body: { schema_name: at.schema, operations },
  })
