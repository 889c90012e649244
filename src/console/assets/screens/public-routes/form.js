import { useState } from 'preact/hooks'
import { Check, Failure, Field, take, useFocus } from '../../controls.js'
import { useAct } from '../../hooks.js'
import { html } from '../../html.js'
import { useClients, useTableNames } from '../client-field.js'
import { TextArea } from '../text-area.js'
import { Conditions } from './conditions.js'
import { MEANINGS, OPERATIONS } from './record.js'

/** @typedef {import('./facts.js').Typed} Typed */

/**
 * @param {{ typed: Typed, isNew?: boolean, caller: import('../../session.js').Caller, verb: string, save: (typed: Typed) => Promise<unknown>, onCancel: () => void }} props
 */
export function RouteForm({ typed: before, isNew = false, caller, verb, save, onCancel }) {
  const [typed, setTyped] = useState(before)
  const { run, isBusy, failure } = useAct()
  const form = useFocus()
  const names = useClients(caller)
  const tables = useTableNames(typed.client_name, caller)
  const set = (/** @type {keyof Typed} */ name) =>
    take((value) => setTyped((now) => ({ ...now, [name]: value })))
  const turn = (/** @type {string} */ op) =>
    setTyped((now) => ({
      ...now,
      allowed_ops: OPERATIONS.filter((one) => (one === op) !== now.allowed_ops.includes(one)),
    }))
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    return run(() => save(typed))
  }
  const isSql = typed.allowed_ops.includes('query')
  return html`<form ref=${form} class="narrow" onSubmit=${submit}>
    ${
      isNew &&
      html`<${Field} label="Route" required autofocus autocomplete="off" maxlength="63" pattern="[a-z0-9][a-z0-9\\-]*" value=${typed.route_key}
        onInput=${set('route_key')} hint="The name in the path: lower-case letters, digits and -" />`
    }
    <${Field} label="Client" value=${typed.client_name} onChange=${set('client_name')}>
      ${[...new Set([...names, typed.client_name])].map((name) => html`<option value=${name}>${name}</option>`)}
    <//>
    <fieldset class="choices"><legend>Operations</legend>${OPERATIONS.map(
      (
        op,
      ) => html`<label class="right"><input type="checkbox" checked=${typed.allowed_ops.includes(op)} onChange=${() => turn(op)} />
        <span><code>${op}</code> <span class="soft">${MEANINGS[op]}</span></span></label>`,
    )}</fieldset>
    <${Field} label="Table" list="tables-of-route" autocomplete="off" maxlength="300" autofocus=${!isNew} value=${typed.table_name} onInput=${set('table_name')}
      hint="The only table. Without one the body names it, and the key of the caller needs the right to it." />
    <datalist id="tables-of-route">${tables.map((name) => html`<option value=${name} />`)}</datalist>
    <${Field} label="Columns" autocomplete="off" value=${typed.columns} onInput=${set('columns')} placeholder="id, title"
      hint="The only ones that a body can mention or get. Empty: all." />
    <${Conditions} text=${typed.conditions} onText=${(/** @type {string} */ conditions) => setTyped((now) => ({ ...now, conditions }))} />
    ${
      isSql &&
      html`<${TextArea} label="SQL" required maxlength="20000" rows="4" value=${typed.query} onInput=${set('query')}
        hint="One statement. A body gives params for $1, $2, … and nothing else." />`
    }
    <fieldset class="choices"><legend>Callers</legend>
      <p><${Check} label="need a key of the client with the right of the operation" checked=${typed.requires_key}
        onChange=${() => setTyped((now) => ({ ...now, requires_key: !now.requires_key }))} /></p>
      ${!typed.requires_key && html`<p class="hint">Everybody who can reach the service may call this route.</p>`}
      <${Field} label="With row-level security they act as" value=${typed.run_as} onChange=${set('run_as')}>
        <option value="caller">their session or the anonymous role: policies decide</option>
        <option value="owner">the client’s own role: only this record decides</option>
      <//>
      <div class="row"><label class="inline">An address may ask <input type="number" required min="1" max="1000000" value=${typed.requests} onInput=${set('requests')} /> times</label>
        <label class="inline">in <input type="number" required min="1" max="86400" value=${typed.window_seconds} onInput=${set('window_seconds')} /> seconds</label></div>
      <${TextArea} label="Pages of these origins may read the answers" rows="2" placeholder="https://shop.example.com" value=${typed.allowed_origins}
        onInput=${set('allowed_origins')} hint="One a line; * for all. Without cookies." />
    </fieldset>
    <${Failure} of=${failure} />
    <div class="row">
      <button class="primary" disabled=${isBusy}>${verb}</button>
      <button type="button" onClick=${onCancel}>Cancel</button>
    </div>
  </form>`
}
