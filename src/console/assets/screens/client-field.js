import { useId } from 'preact/hooks'
import { call } from '../api.js'
import { Field, take } from '../controls.js'
import { useLoad } from '../hooks.js'
import { html } from '../html.js'
import { may } from '../session.js'

/** Names of clients to choose from: all where one may list them, else those that one has rights on. @param {import('../session.js').Caller} caller @returns {readonly string[]} */
export function useClients(caller) {
  const named = Object.keys(caller.clients).filter((name) => name !== '*')
  const { data } = useLoad(
    async (signal) => {
      if (!may(caller, ['operator:clients'])) return named
      const { data } = await call('/admin/clients', { signal })
      /** @type {readonly { client_name: string }[]} */
      const clients = data.clients
      return clients.map(({ client_name }) => client_name)
    },
    [caller],
  )
  return data ?? named
}

/** A client, chosen or typed. @param {{ clients: readonly string[], value: string, onChange: (client: string) => void } & Record<string, unknown>} props */
export function ClientField({ clients, value, onChange, ...input }) {
  const id = useId()
  return html`<${Field} label="Client" required autocomplete="off" maxlength="63" list=${id} value=${value} onInput=${take(onChange)} ...${input} />
    <datalist id=${id}>${clients.map((name) => html`<option value=${name}></option>`)}</datalist>`
}

/** The client that a form begins with. @param {import('../session.js').Caller} caller */
export const firstClient = ({ clients }) => Object.keys(clients).find((name) => name !== '*') ?? 'default'

const TO_STRUCTURE = ['*', 'management.*', 'management.read']

/**
 * Names of the tables of a client, as rights and routes write them. Who may not list them types the name.
 * @param {string} client
 * @param {import('../session.js').Caller} caller
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
