import { call } from '../../api.js'
import { Link, say, Title } from '../../controls.js'
import { html } from '../../html.js'
import { addressOf, go } from '../../router.js'
import { firstClient } from '../client-field.js'
import { hand } from '../issued-secret.js'
import { KeyForm, NO_FACTS } from './form.js'

/** @param {{ caller: import('../../session.js').Caller }} props */
export function NewKey({ caller }) {
  const save = async (/** @type {import('./form.js').Facts} */ facts) => {
    const { data } = await call('/admin/api-keys', { method: 'POST', body: facts })
    hand({ id: data.record.id, secret: data.api_key })
    say(`${facts.name} was created`)
    go(addressOf(`/keys/${data.record.id}`), { replaces: true })
  }
  return html`<p class="crumb"><${Link} to="/keys">Keys<//></p>
    <${Title} title="New key" />
    <${KeyForm} facts=${{ ...NO_FACTS, client_name: firstClient(caller) }} caller=${caller} verb="Create the key" save=${save} onCancel=${() => go(addressOf('/keys'))} />`
}
