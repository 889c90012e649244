/**
 * What a key opens on one client, as the service resolves its rights.
 * @typedef {{ client_name: string | null, through: 'requests' | 'pipelines', is_known: boolean, has_row_level_security: boolean | null,
 *   every_table: readonly string[], tables: readonly { table: string, actions: readonly string[] }[],
 *   operations: readonly { right: string, description: string }[] }} Reached
 */

/** @type {Readonly<Record<string, string>>} */
const VERBS = { read: 'reads', write: 'inserts and updates', delete: 'deletes' }

/** “reads, inserts and updates”. @param {readonly string[]} actions */
export const verbsOf = (actions) => actions.map((action) => VERBS[action] ?? action).join(', ')

/** @param {Reached} reached */
export function titleOf({ client_name, through }) {
  const whom =
    client_name ?? (through === 'pipelines' ? 'Any other client' : 'Every client but the logging one')
  return through === 'pipelines' ? `${whom}, by its pipelines` : whom
}

const BYPASS = 'gateway.bypass_row_level_security'

/** What the policies of the database have to say. @param {Reached} reached */
export function policiesOf({ has_row_level_security: has, operations }) {
  const isPast = operations.some(({ right }) => right === BYPASS)
  if (has === false) return undefined
  const where = has === true ? 'This client has row-level security' : 'Where a client has row-level security'
  return isPast
    ? `${where}: the key acts past it, as the client’s own role.`
    : `${where}: a request gets the rows that the policies give to its session, or to the anonymous role.`
}
