import { call } from '../../api.js'
import { may } from '../../session.js'

/**
 * @typedef {'pending' | 'retrying' | 'succeeded' | 'failed' | 'expired'} Status
 * @typedef {{ id: string, url: string, client_name: string | null, route_keys: readonly string[], table_name: string | null, filter: unknown, headers: Readonly<Record<string, string>>, description: string | null, is_active: boolean, timeout_ms: number, consecutive_failures: number, disabled_reason: string | null, former_secrets_until: readonly string[], created_at: string, created_by?: string | null, updated_at: string }} Webhook
 * @typedef {Webhook & { last_delivery: { status: Status, response_status: number | null, created_at: string } | null }} ListedWebhook
 * @typedef {{ id: string, event_id: string, route_key: string, status: Status, attempt: number, response_status: number | null, response_body: string | null, error: string | null, duration_ms: number | null, next_attempt_at: string | null, created_at: string }} Delivery
 * @typedef {import('../../session.js').Caller} Caller
 */

/**
 * These routes want a client, though they are about the webhooks of all.
 * @param {Caller} caller
 * @param {string} path
 * @param {import('../../api.js').Asked} [asked]
 */
export async function callWebhooks({ clients }, path, asked = {}) {
  const client = Object.keys(clients).find((name) => name !== '*') ?? 'default'
  const { data } = await call(`/admin/webhooks${path}`, { client, ...asked })
  return data
}

/** @param {string} id @param {string} [more] */
export const pathOf = (id, more = '') => `/${encodeURIComponent(id)}${more}`

/** Keys have no roles. @param {Caller} caller */
const isKey = ({ person }) => person === undefined

/** Whether the caller may have a webhook of users. @param {Caller} caller */
export const seesUsers = (caller) => isKey(caller) || may(caller, ['user:list'])

/** @param {Pick<Webhook, 'client_name'>} webhook */
export const isOfUsers = ({ client_name }) => client_name === null

/**
 * Whether the caller may read what the webhook sends, as far as the browser knows: rights on single tables are the service's to judge.
 * @param {Caller} caller
 * @param {Webhook} webhook
 */
export const mayRead = (caller, { client_name, route_keys }) => {
  if (client_name === null) return seesUsers(caller)
  const hasRows = route_keys.some((key) => key === '*' || key.startsWith('gateway'))
  return !hasRows || Object.hasOwn(caller.clients, '*') || Object.hasOwn(caller.clients, client_name)
}
