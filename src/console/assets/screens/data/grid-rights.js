/**
 * @typedef {import('./edit.js').Place} Place
 * @typedef {import('../../session.js').Caller} Caller
 */

/**
 * Whether the rights of the caller cover an act on the rows of a table. The gateway decides; this decides which buttons there are.
 * @param {Caller} caller
 * @param {Place} place
 * @param {'read' | 'write' | 'delete'} action
 */
export function mayRows({ clients }, { client, schema, table }, action) {
  const held = [...(clients[client] ?? []), ...(clients['*'] ?? [])]
  const name = schema === 'public' ? table : `${schema}.${table}`
  const enough = ['*', 'gateway.*', `gateway.${action}`, `*.${action}`, `${name}.${action}`, `${name}.*`]
  return enough.some((right) => held.includes(right))
}

/**
 * Why no cell can be edited, if none can.
 * @param {Caller} caller
 * @param {Place} place
 * @param {import('./edit.js').Structure} structure
 * @returns {string | undefined}
 */
export function whyReadOnly(caller, place, { columns, key, isText }) {
  if (columns === undefined)
    return 'These rows are read only: the right management.read would tell their primary key, which an edit needs.'
  if (!isText)
    return 'These rows are read only: the driver of this client cannot compare values as text, so an edit could overwrite that of somebody else.'
  if (key.length === 0)
    return 'These rows are read only: without a primary key nothing names one row. Add one, and its rows can be edited.'
  if (!mayRows(caller, place, 'write')) return 'These rows are read only: your roles let you read them.'
  return undefined
}
