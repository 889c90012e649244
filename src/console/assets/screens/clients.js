import { call } from '../api.js'
import { may } from '../session.js'

/**
 * The clients that the caller has rights on.
 * @param {import('../session.js').Caller} caller
 * @param {AbortSignal} signal
 * @returns {Promise<readonly string[]>}
 */
export async function clientsOf(caller, signal) {
  const named = Object.keys(caller.clients).filter((name) => name !== '*')
  if (caller.clients['*'] === undefined) return named
  if (!may(caller, ['operator:clients'])) return named.length > 0 ? named : ['default']
  const { data } = await call('/admin/clients', { signal })
  /** @type {readonly { client_name: string, is_active: boolean }[]} */
  const records = data.clients
  return records.filter(({ is_active }) => is_active).map(({ client_name }) => client_name)
}
