/**
 * What the caller may do on a client, to show what would be refused to nobody who sees it. The routes decide.
 * @typedef {import('./session.js').Caller} Caller
 */

/**
 * A right with a name of its own, like `management.tables.write`.
 * @param {Caller} caller
 * @param {string} client
 * @param {string} right
 */
export function holds(caller, client, right) {
  const held = rightsOn(caller, client)
  // Of a key only the service knows the rights. The admin key changes no structure.
  if (held === undefined) return caller.clients['*'] === undefined || !right.startsWith('management.')
  if (NAMED_ONLY.includes(right)) return held.includes(right)
  const parts = right.split('.')
  const wildcards = parts.slice(1).map((_part, index) => `${parts.slice(0, index + 1).join('.')}.*`)
  return held.some((one) => one === right || one === '*' || wildcards.includes(one))
}

/** No wildcard includes them where row-level security decides. */
const NAMED_ONLY = ['gateway.bypass_row_level_security', 'management.functions.write']

/**
 * @param {Caller} caller
 * @param {import('./screens/data/described.js').At} at
 * @param {'read' | 'write' | 'delete'} action
 */
export function holdsTable(caller, { client, schema, table }, action) {
  const held = rightsOn(caller, client)
  const name = schema === 'public' ? table : `${schema}.${table}`
  const sufficient = ['*', 'gateway.*', `gateway.${action}`, `*.${action}`, `${name}.${action}`, `${name}.*`]
  return held === undefined || held.some((one) => sufficient.includes(one))
}

/** Undefined for a key. @param {Caller} caller @param {string} client */
const rightsOn = ({ person, clients }, client) =>
  person === undefined ? undefined : [...(clients['*'] ?? []), ...(clients[client] ?? [])]
