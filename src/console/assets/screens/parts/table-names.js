import { call } from '../../api.js'
import { useLoad } from '../../hooks.js'

/** The client that a form begins with. @param {import('../../session.js').Caller} caller */
export const firstClient = ({ clients }) => Object.keys(clients).find((name) => name !== '*') ?? 'default'

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
