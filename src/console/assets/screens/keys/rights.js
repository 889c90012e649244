import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Pending, take } from '../../controls.js'
import { html } from '../../html.js'
import { Value } from '../../values.js'
import { useTableNames } from '../client-field.js'

/** @typedef {{ right: string, description: string }} Right */

/** @type {readonly (readonly [prefix: string, title: string, all: Right | undefined])[]} */
const GROUPS = [
  ['gateway.', 'Rows, SQL and functions', { right: 'gateway.*', description: 'All of these' }],
  ['pipelines.', 'Pipelines', undefined],
  ['management.', 'Structure', { right: 'management.*', description: 'All of these' }],
]

/**
 * Chooses rights: those of the catalogue, and rights to tables.
 * @param {{ rights: readonly string[], onChange: (rights: readonly string[]) => void, catalogue: import('../../hooks.js').Loaded<any>, client: string, caller: import('../../session.js').Caller }} props
 * `client`: the only one of the key; empty for all.
 */
export function RightsPicker({ rights, onChange, catalogue, client, caller }) {
  const { data, failure, reload } = catalogue
  if (failure !== undefined || data === undefined)
    return html`<${Pending} of="the rights" failure=${failure} again=${reload} />`
  /** @type {readonly Right[]} */
  const known = data.data.rights
  const toggle = (/** @type {string} */ right) =>
    onChange(rights.includes(right) ? rights.filter((one) => one !== right) : [...rights, right])
  const box = (/** @type {Right} */ { right, description }, isDisabled = false) => html`<label class="right">
    <input type="checkbox" checked=${rights.includes(right)} disabled=${isDisabled && !rights.includes(right)} onChange=${() => toggle(right)} />
    <span><code>${right}</code> <span class="soft">${description}</span></span>
  </label>`
  const isFixed = (/** @type {string} */ right) =>
    right === '*' ||
    known.some((one) => one.right === right) ||
    GROUPS.some(([, , all]) => all?.right === right)
  return html`<fieldset class="choices"><legend>Everything</legend>
      ${box({ right: '*', description: 'All rights but those past row-level security' })}
    </fieldset>
    <${TableRights} rights=${rights.filter((right) => !isFixed(right))} client=${client} caller=${caller}
      onAdd=${(/** @type {readonly string[]} */ added) => onChange([...new Set([...rights, ...added])])} onRemove=${toggle} />
    ${GROUPS.map(([prefix, title, all]) => {
      const needsClient = prefix === 'management.' && client === ''
      return html`<fieldset class="choices"><legend>${title}</legend>
        ${needsClient && html`<p class="hint">These need a key that is bound to a client.</p>`}
        ${all !== undefined && box(all, needsClient)}
        ${known.filter(({ right }) => right.startsWith(prefix)).map((right) => box(right, needsClient))}
      </fieldset>`
    })}`
}

const ACTIONS = /** @type {const} */ (['read', 'write', 'delete'])

/**
 * @param {{ rights: readonly string[], client: string, caller: import('../../session.js').Caller, onAdd: (rights: readonly string[]) => void, onRemove: (right: string) => void }} props
 */
function TableRights({ rights, client, caller, onAdd, onRemove }) {
  const tables = useTableNames(client, caller)
  const [table, setTable] = useState('')
  const [actions, setActions] = useState(/** @type {readonly string[]} */ (['read']))
  const add = () => {
    const name = table.trim()
    if (name === '' || actions.length === 0) return
    onAdd(actions.length === ACTIONS.length ? [`${name}.*`] : actions.map((action) => `${name}.${action}`))
    setTable('')
  }
  const field = useRef(/** @type {HTMLInputElement | null} */ (null))
  // Otherwise a key would be made without what stands there. At once: the form may be sent before the next frame.
  useLayoutEffect(
    () => field.current?.setCustomValidity(table.trim() === '' ? '' : 'Add the table, or empty this field'),
    [table],
  )
  /** Enter adds, and does not send the form around it. */
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'Enter') return
    event.preventDefault()
    add()
  }
  const turn = (/** @type {string} */ action) =>
    setActions(ACTIONS.filter((one) => (one === action) !== actions.includes(one)))
  return html`<fieldset class="choices"><legend>Single tables</legend>
    <div class="tools">
      <label>Table <input ref=${field} list="tables-of-client" autocomplete="off" maxlength="190" placeholder="users, or sales.orders" value=${table} onInput=${take(setTable)} onKeyDown=${press} /></label>
      <datalist id="tables-of-client">${tables.map((name) => html`<option value=${name} />`)}</datalist>
      ${ACTIONS.map(
        (action) =>
          html`<label class="check"><input type="checkbox" checked=${actions.includes(action)} onChange=${() => turn(action)} /> ${action}</label>`,
      )}
      <button type="button" disabled=${table.trim() === '' || actions.length === 0} onClick=${add}>Add</button>
    </div>
    ${rights.map(
      (right) => html`<span class="chip"><code><${Value} value=${right} most=${80} /></code>
        <button type="button" class="plain" aria-label=${`Remove ${right}`} onClick=${() => onRemove(right)}>×</button></span> `,
    )}
  </fieldset>`
}
