import { Mark } from '../../controls.js'
import { html } from '../../html.js'
import { countOf, Value } from '../../values.js'

/**
 * @typedef {{ id: string, route_key: string, client_name: string, allowed_ops: readonly string[], table_name: string | null, conditions: unknown,
 *   columns: readonly string[] | null, query: string | null, requires_key: boolean, run_as: string, rate_limit: { requests: number, window_seconds: number },
 *   allowed_origins: readonly string[], is_active: boolean, created_at: string, created_by?: string | null, updated_at: string }} Route
 */

export const OPERATIONS = /** @type {const} */ (['fetch', 'insert', 'update', 'delete', 'subscribe', 'query'])

/** What a caller may do with each. @type {Readonly<Record<string, string>>} */
export const MEANINGS = {
  fetch: 'read rows',
  insert: 'add rows',
  update: 'change rows',
  delete: 'delete rows',
  subscribe: 'follow rows as they change',
  query: 'run the SQL of the route',
}

/** @param {{ of: Pick<Route, 'is_active'> }} props */
export const RouteState = ({ of: { is_active } }) =>
  is_active ? html`<${Mark} tone="good">active<//>` : html`<${Mark} tone="bad">closed<//>`

/** @param {{ of: Pick<Route, 'table_name' | 'query'> }} props */
export const Target = ({ of: { table_name, query } }) =>
  table_name !== null
    ? html`<code><${Value} value=${table_name} /></code>${query !== null && html` <span class="soft">and SQL</span>`}`
    : query !== null
      ? 'SQL'
      : html`<span class="soft">tables of the key</span>`

/** @param {{ of: Pick<Route, 'allowed_ops'> }} props */
export const Operations = ({ of: { allowed_ops } }) =>
  html`<span class="marks">${allowed_ops.map((op) => html`<${Mark}>${op}<//>`)}</span>`

/** @param {{ of: Pick<Route, 'requires_key'> }} props */
export const Callers = ({ of: { requires_key } }) =>
  requires_key ? 'keys' : html`<${Mark} tone="warn">everybody<//>`

/** @param {Pick<Route, 'rate_limit'>} route */
export const limitOf = ({ rate_limit: { requests, window_seconds: seconds } }) =>
  `${countOf(requests, 'request')} in ${countOf(seconds, 'second')}`
