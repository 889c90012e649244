import { call } from '../../api.js'
import { Mark, Pending } from '../../controls.js'
import { useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { Value } from '../../values.js'

/**
 * What a key opens on one client, as the service resolves its rights.
 * @typedef {{ client_name: string | null, through: 'requests' | 'pipelines', is_known: boolean, has_row_level_security: boolean | null,
 *   every_table: readonly string[], tables: readonly { table: string, actions: readonly string[] }[],
 *   operations: readonly { right: string, description: string }[] }} Reached
 */

/**
 * What a key with these rights can reach, in words.
 * @param {{ clientName: string | null, rights: readonly string[], overrides: readonly string[] }} props
 */
export function Reach({ clientName, rights, overrides }) {
  const body = { client_name: clientName, rights, client_overrides: overrides }
  const { data, failure } = useLoad(
    (signal) => call('/admin/rights/resolve', { method: 'POST', body, signal }),
    [JSON.stringify(body)],
  )
  if (failure !== undefined || data === undefined)
    return html`<${Pending} of="what the key can reach" failure=${failure} />`
  /** @type {readonly Reached[]} */
  const reach = data.data.reach
  return html`<ul class="list reach">${reach.map((reached) => html`<${ReachedClient} of=${reached} />`)}</ul>`
}

/** @param {{ of: Reached }} props */
function ReachedClient({ of: reached }) {
  const { every_table: every, tables, operations, is_known } = reached
  const policies = policiesOf(reached)
  const isNothing = every.length === 0 && tables.length === 0 && operations.length === 0
  return html`<li>
    <h3><${Value} value=${titleOf(reached)} /> ${!is_known && html`<${Mark} tone="warn">no such client<//>`}</h3>
    <ul>
      ${every.length > 0 && html`<li>${verbsOf(every)} rows of <strong>every table</strong></li>`}
      ${tables.map(({ table, actions }) => html`<li>${verbsOf(actions)} rows of <code><${Value} value=${table} /></code></li>`)}
      ${operations.map(({ right, description }) => html`<li>${description} <code class="soft">${right}</code></li>`)}
      ${isNothing && html`<li class="soft">nothing: no right opens anything here</li>`}
    </ul>
    ${policies !== undefined && !isNothing && html`<p class="fine">${policies}</p>`}
  </li>`
}

/** @type {Readonly<Record<string, string>>} */
const VERBS = { read: 'reads', write: 'inserts and updates', delete: 'deletes' }

/** “reads, inserts and updates”. @param {readonly string[]} actions */
const verbsOf = (actions) => actions.map((action) => VERBS[action] ?? action).join(', ')

/** @param {Reached} reached */
function titleOf({ client_name, through }) {
  const whom =
    client_name ?? (through === 'pipelines' ? 'Any other client' : 'Every client but the logging one')
  return through === 'pipelines' ? `${whom}, by its pipelines` : whom
}

const BYPASS = 'gateway.bypass_row_level_security'

/** What the policies of the database have to say. @param {Reached} reached */
function policiesOf({ has_row_level_security: has, operations }) {
  const isPast = operations.some(({ right }) => right === BYPASS)
  if (has === false) return undefined
  const where = has === true ? 'This client has row-level security' : 'Where a client has row-level security'
  return isPast
    ? `${where}: the key acts past it, as the client’s own role.`
    : `${where}: a request gets the rows that the policies give to its session, or to the anonymous role.`
}
