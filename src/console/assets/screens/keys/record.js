import { Mark } from '../../controls.js'
import { html } from '../../html.js'
import { Value } from '../../values.js'

/**
 * @typedef {{ id: string, public_id: string, name: string, description: string | null, client_name: string | null, rights: readonly string[],
 *   client_overrides: readonly string[], is_active: boolean, expires_at: string | null, last_used_at: string | null, created_at: string,
 *   created_by?: string | null, updated_at: string }} Key
 */

/** @param {Pick<Key, 'is_active' | 'expires_at'>} key @returns {'active' | 'inactive' | 'expired'} */
export const stateOf = ({ is_active, expires_at }) =>
  !is_active
    ? 'inactive'
    : expires_at !== null && new Date(expires_at).getTime() <= Date.now()
      ? 'expired'
      : 'active'

const TONES = /** @type {const} */ ({ active: 'good', inactive: 'bad', expired: 'warn' })

/** @param {{ of: Pick<Key, 'is_active' | 'expires_at'> }} props */
export function KeyState({ of: key }) {
  const state = stateOf(key)
  return html`<${Mark} tone=${TONES[state]}>${state}<//>`
}

/** The part of a key that is no secret. @param {{ of: Pick<Key, 'public_id'> }} props */
export const PublicPart = ({ of: { public_id } }) => html`<code class="id">svc_${public_id}</code>`

/** @param {{ name: string | null }} props */
export const ClientName = ({ name }) =>
  name === null ? html`<span class="soft">every client</span>` : html`<${Value} value=${name} />`

const FEW = 3

/** @param {{ rights: readonly string[] }} props */
export const Rights = ({ rights }) => html`<span class="marks">
  ${rights.slice(0, FEW).map((right) => html`<${Mark}><${Value} value=${right} most=${40} /><//>`)}
  ${rights.length > FEW && html`<span class="soft">and ${rights.length - FEW} more</span>`}
  ${rights.length === 0 && html`<span class="soft">none</span>`}
</span>`
