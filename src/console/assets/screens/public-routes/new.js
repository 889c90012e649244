import { call } from '../../api.js'
import { Link, say, Title } from '../../controls.js'
import { html } from '../../html.js'
import { addressOf, go } from '../../router.js'
import { firstClient } from '../client-field.js'
import { factsOf, NOTHING_TYPED } from './facts.js'
import { RouteForm } from './form.js'

/** @param {{ caller: import('../../session.js').Caller }} props */
export function NewRoute({ caller }) {
  const save = async (/** @type {import('./facts.js').Typed} */ typed) => {
    const body = { route_key: typed.route_key, ...factsOf(typed) }
    await call('/admin/public-routes', { method: 'POST', body })
    say(`${typed.route_key} is open`)
    go(addressOf(`/public-routes/${typed.route_key}`), { replaces: true })
  }
  return html`<p class="crumb"><${Link} to="/public-routes">Public routes<//></p>
    <${Title} title="New public route" />
    <${RouteForm} isNew typed=${{ ...NOTHING_TYPED, client_name: firstClient(caller) }} caller=${caller} verb="Open the route" save=${save}
      onCancel=${() => go(addressOf('/public-routes'))} />`
}
