import { useState } from 'preact/hooks'
import { call } from '../../api.js'
import { Failure, Field, Panel, take, useFocus } from '../../controls.js'
import { useAct, useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { useClients } from '../client-field.js'
import { Expiry, expiryOf } from './expiry.js'
import { Reach } from './reach.js'
import { RightsPicker } from './rights.js'

/** @typedef {Pick<import('./record.js').Key, 'name' | 'description' | 'client_name' | 'rights' | 'client_overrides' | 'expires_at'>} Facts */

/** @type {Facts} */
export const NO_FACTS = {
  name: '',
  description: null,
  client_name: null,
  rights: [],
  client_overrides: ['*'],
  expires_at: null,
}

/**
 * The facts of a key, and beside them what a key with these could reach. `save` gets all of them.
 * @param {{ facts: Facts, caller: import('../../session.js').Caller, verb: string, save: (facts: Facts) => Promise<unknown>, onCancel: () => void }} props
 */
export function KeyForm({ facts, caller, verb, save, onCancel }) {
  const [typed, setTyped] = useState(facts)
  const [until, setUntil] = useState(() => expiryOf(facts.expires_at))
  const { run, isBusy, failure } = useAct()
  const form = useFocus()
  const names = useClients(caller)
  const catalogue = useLoad((signal) => call('/admin/rights/catalog', { signal }), [])
  const set = (/** @type {Partial<Facts>} */ more) => setTyped({ ...typed, ...more })
  const client = typed.client_name ?? ''
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    return run(() => save({ ...typed, expires_at: until.instant() }))
  }
  const runsPipelines = typed.rights.some((right) => ['*', 'pipelines.run', 'pipelines.*'].includes(right))
  return html`<form ref=${form} onSubmit=${submit}>
    <div class="split wide">
      <div>
        <${Field} label="Name" required autofocus autocomplete="off" maxlength="200" value=${typed.name}
          onInput=${take((name) => set({ name }))} />
        <${Field} label="What it is for" autocomplete="off" maxlength="1000" value=${typed.description ?? ''}
          onInput=${take((text) => set({ description: text === '' ? null : text }))} />
        <${Field} label="Client" value=${client} onChange=${take((name) => set({ client_name: name === '' ? null : name }))}
          hint="Bound to one client a key can do the least. Management rights need one.">
          ${[...new Set([...names, ...(client === '' ? [] : [client])])].map((name) => html`<option value=${name}>${name}</option>`)}
          <option value="">Every client</option>
        <//>
        <${Expiry} until=${until} onChange=${setUntil} />
        ${
          runsPipelines &&
          client !== '' &&
          html`<${Field} label="Further clients of its pipelines" autocomplete="off" value=${typed.client_overrides.join(', ')}
            onChange=${take((text) => set({ client_overrides: listIn(text) }))} hint="Names with commas between them, * for all, or nothing." />`
        }
        <${RightsPicker} rights=${typed.rights} client=${client} catalogue=${catalogue} caller=${caller}
          onChange=${(/** @type {readonly string[]} */ rights) => set({ rights })} />
      </div>
      <${Panel} title="What it can reach">
        <${Reach} clientName=${typed.client_name} rights=${typed.rights} overrides=${typed.client_overrides} />
      <//>
    </div>
    <${Failure} of=${failure} />
    <div class="row">
      <button class="primary" disabled=${isBusy}>${verb}</button>
      <button type="button" onClick=${onCancel}>Cancel</button>
    </div>
  </form>`
}

/** @param {string} text */
const listIn = (text) =>
  text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
