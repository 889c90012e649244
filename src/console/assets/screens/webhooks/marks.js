import { Mark } from '../../controls.js'
import { html } from '../../html.js'
import { countOf, Value } from '../../values.js'

/** @typedef {import('./calls.js').Webhook} Webhook */

/** @param {{ of: Pick<Webhook, 'is_active' | 'consecutive_failures' | 'disabled_reason'> }} props */
export function State({
  of: { is_active: isActive, consecutive_failures: failures, disabled_reason: reason },
}) {
  if (!isActive && reason === null) return html`<${Mark}>paused<//>`
  if (!isActive) return html`<${Mark} tone="bad">stopped<//>`
  if (failures === 0) return html`<${Mark} tone="good">active<//>`
  return html`<${Mark} tone="bad">failing, ${countOf(failures, 'time')}<//>`
}

const TONES = /** @type {const} */ ({
  pending: 'plain',
  retrying: 'warn',
  succeeded: 'good',
  failed: 'bad',
  expired: 'warn',
})

/** @param {{ of: import('./calls.js').Status }} props */
export const StatusMark = ({ of: status }) => html`<${Mark} tone=${TONES[status]}>${status}<//>`

/** The client or the users whose events it gets. @param {{ of: Pick<Webhook, 'client_name'> }} props */
export const Owner = ({ of: { client_name: client } }) =>
  client === null ? html`<${Mark}>users<//>` : html`<${Value} value=${client} />`

/** @param {{ of: Pick<Webhook, 'route_keys'> }} props */
export const Events = ({ of: { route_keys: keys } }) =>
  html`<code><${Value} value=${keys.join(', ')} most=${120} /></code>`
