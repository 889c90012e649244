import { useState } from 'preact/hooks'
import { call } from '../../api.js'
import { Fact, Failure, Link, Panel, Pending, say, Title } from '../../controls.js'
import { useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { may } from '../../session.js'
import { Time, Value } from '../../values.js'
import { Secret, takeIssued } from '../issued-secret.js'
import { Creator } from '../parts/creator.js'
import { Acts } from './acts.js'
import { KeyForm } from './form.js'
import { Reach } from './reach.js'
import { ClientName, KeyState, PublicPart } from './record.js'

/** @typedef {import('./record.js').Key} Key */

/** One key. @param {{ id: string, caller: import('../../session.js').Caller }} props */
export function KeyView({ id, caller }) {
  const { data, failure, reload } = useLoad(
    (signal) => call(`/admin/api-keys/${encodeURIComponent(id)}`, { signal }),
    [id],
  )
  const [secret, setSecret] = useState(() => takeIssued(id))
  const [isEdited, setEdited] = useState(false)
  const key = /** @type {Key | undefined} */ (data?.data)
  if (key === undefined)
    return html`<p class="crumb"><${Link} to="/keys">Keys<//></p><${Title} title="Key" /><${Pending} of="the key" failure=${failure} again=${reload} />`
  const save = async (/** @type {import('./form.js').Facts} */ facts) => {
    const body = changesOf(key, facts)
    if (Object.keys(body).length > 0) {
      await call(`/admin/api-keys/${id}`, { method: 'PATCH', body })
      say(`${facts.name} was changed`)
    }
    setEdited(false)
    reload()
  }
  return html`<p class="crumb"><${Link} to="/keys">Keys<//></p>
    <${Title} title=${key.name}><${KeyState} of=${key} /><//>
    <${Failure} of=${failure} again=${reload} />
    ${secret !== undefined && html`<${Secret} secret=${secret} onClose=${() => setSecret(undefined)} />`}
    ${
      isEdited
        ? html`<${KeyForm} facts=${key} caller=${caller} verb="Save" save=${save} onCancel=${() => setEdited(false)} />`
        : html`<${Acts} of=${key} onEdit=${() => setEdited(true)} onSecret=${setSecret} reload=${reload} />
          <div class="columns">
            <${Facts} of=${key} caller=${caller} />
            <${Panel} title="What it can reach"><${Reach} clientName=${key.client_name} rights=${key.rights} overrides=${key.client_overrides} /><//>
          </div>`
    }`
}

const CHANGED = /** @type {const} */ ([
  'name',
  'description',
  'client_name',
  'rights',
  'client_overrides',
  'expires_at',
])

/** Only what was changed is sent, so that what somebody else has changed meanwhile stays. @param {Key} key @param {import('./form.js').Facts} facts */
const changesOf = (key, facts) =>
  Object.fromEntries(
    CHANGED.filter((name) => JSON.stringify(key[name]) !== JSON.stringify(facts[name])).map((name) => [
      name,
      facts[name],
    ]),
  )

/** @param {{ of: Key, caller: import('../../session.js').Caller }} props */
function Facts({ of: key, caller }) {
  const trail =
    may(caller, ['audit:list']) && html`<${Link} to="/audit" query=${{ target: key.id }}>Audit<//>`
  return html`<${Panel} title="Key" actions=${trail}>
    <dl class="facts">
      <${Fact} name="Key"><${PublicPart} of=${key} /><//>
      ${key.description !== null && html`<${Fact} name="For"><${Value} value=${key.description} most=${1_000} /><//>`}
      <${Fact} name="Client"><${ClientName} name=${key.client_name} /><//>
      <${Fact} name="Rights">${
        key.rights.length === 0
          ? html`<span class="soft">none</span>`
          : key.rights.map((right) => html`<code><${Value} value=${right} /></code> `)
      }<//>
      <${Fact} name="Last used"><${Time} at=${key.last_used_at} /><//>
      <${Fact} name="Expires"><${Time} at=${key.expires_at} /><//>
      <${Fact} name="Created"><${Time} at=${key.created_at} /><//>
      <${Creator} by=${key.created_by} caller=${caller} />
      <${Fact} name="Changed"><${Time} at=${key.updated_at} /><//>
      <${Fact} name="Id"><code>${key.id}</code><//>
    </dl>
  <//>`
}
