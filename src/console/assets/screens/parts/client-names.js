import { call } from '../../api.js'
import { useLoad } from '../../hooks.js'
import { may } from '../../session.js'

/** The client that a form begins with. @param {import('../../session.js').Caller} caller */
export const firstClient = ({ clients }) => Object.keys(clients).find((name) => name !== '*') ?? 'default'

/**
 * Names of clients that a field can offer: all where the caller may list them, else those that the caller has rights on.
 * @param {import('../../session.js').Caller} caller
 * @returns {readonly string[]}
 */
export function useClientNames(caller) {
  const own = Object.keys(caller.clients).filter((name) => name !== '*')
  const { data } = useLoad(
    async (signal) => (may(caller, ['operator:clients']) ? call('/admin/clients', { signal }) : undefined),
    [caller],
  )
  if (data === undefined) return own.length > 0 ? own : ['default']
  /** @type {readonly { client_name: string, is_active: boolean }[]} */
  const records = data.data.clients
  return records.filter(({ is_active }) => is_active).map(({ client_name }) => client_name)
}

const TO_STRUCTURE = ['*', 'management.*', 'management.read']

/**
 * Names of the tables of a client, as rights and routes write them. Who may not list them types the name.
 * @param {string} client
 * @param {import('../../session.js').Caller} caller
 * @returns {readonly string[]}
 */
export function useTableNames(client, { clients }) {
  const rights = [...(clients[client] ?? []), ...(clients['*'] ?? [])]
  const mayList = client !== '' && rights.some((right) => TO_STRUCTURE.includes(right))
  const { data } = useLoad(
    async (signal) => (mayList ? call('/schema/tables', { client, signal, isEntry: true }) : undefined),
    [client, mayList],
  )
  /** @type {readonly { table_schema: string, table_name: string }[]} */
  const tables = data?.tables ?? []
  return tables.map(({ table_schema: schema, table_name: table }) =>
    schema === 'public' ? table : `${schema}.${table}`,
  )
}
