import { useState } from 'preact/hooks'
import { ActForm, Check, Field, take } from '../../controls.js'
import { html } from '../../html.js'
import { Value } from '../../values.js'
import { PRESETS, shownBy } from './security.js'

/**
 * @typedef {import('./security.js').Policy} Policy
 * @typedef {import('./security.js').Preset} Preset
 */

const COMMANDS = ['select', 'insert', 'update', 'delete', 'all']

/**
 * A preset, or an expression. What it shows, and to whom, is said before it is set.
 * @param {{ at: import('./described.js').At, security: import('./security.js').Security, columns: readonly import('./described.js').Column[], onAdd: (policy: Policy) => Promise<void>, onClose: () => void }} props
 */
export function AddPolicy({ at, security, columns, onAdd, onClose }) {
  const [kind, setKind] = useState('owner')
  const [column, setColumn] = useState('')
  const [self, setSelf] = useState('')
  const [own, setOwn] = useState({
    name: '',
    command: 'select',
    using: '',
    check: '',
    roles: /** @type {readonly string[]} */ ([]),
  })
  const change = (/** @type {Partial<typeof own>} */ part) => setOwn((before) => ({ ...before, ...part }))
  const preset = Object.keys(PRESETS).includes(kind) ? /** @type {Preset} */ (kind) : undefined
  const hasColumn = preset === 'owner' || preset === 'organization'
  /** @type {Policy} */
  const policy =
    preset === undefined
      ? {
          ...{ name: own.name, command: own.command, roles: own.roles },
          ...(own.using !== '' && { using: own.using }),
          ...(own.check !== '' && { check: own.check }),
        }
      : {
          preset,
          ...(hasColumn && column !== '' && { column }),
          ...(preset === 'organization' && self !== '' && { insert_only_as_self: self }),
        }
  const names = columns.map(({ column_name: name }) => name)
  const option = (/** @type {string} */ name) => html`<option value=${name}>${name}</option>`
  const work = async () => {
    if (preset === undefined && own.roles.length === 0) throw new Error('Choose whom it is for.')
    await onAdd(policy)
  }
  return html`<${ActForm} title=${`New policy of ${at.table}`} verb="Add the policy" onClose=${onClose} work=${work}>
    <${Field} label="Policy" autofocus value=${kind} onChange=${take(setKind)}>
      ${Object.entries(PRESETS).map(([name, label]) => html`<option value=${name}>${label}</option>`)}
      <option value="own">By an expression</option>
    <//>
    ${
      hasColumn &&
      html`<${Field} label="Column" value=${column} onChange=${take(setColumn)} hint="Its default becomes the id of the session.">
        <option value="">${preset === 'owner' ? 'user_id' : 'organization_id'}</option>${names.map(option)}
      <//>`
    }
    ${
      preset === 'organization' &&
      html`<${Field} label="Rows are inserted as oneself in" value=${self} onChange=${take(setSelf)}><option value="">not asked for</option>${names.map(option)}<//>`
    }
    ${preset === undefined && html`<${OwnFields} own=${own} change=${change} roles=${security.grants.map(({ role }) => role)} />`}
    <p class="said"><strong>Makes visible:</strong> <${Value} value=${shownBy(policy)} most=${1_000} /></p>
    ${!security.enabled && html`<p class="hint">Row-level security is turned on with it: everything else of the table is hidden from users and visitors.</p>`}
  <//>`
}

/**
 * @param {{ own: { name: string, command: string, using: string, check: string, roles: readonly string[] }, change: (part: object) => void, roles: readonly string[] }} props
 */
function OwnFields({ own, change, roles }) {
  const turn = (/** @type {string} */ role) =>
    change({
      roles: own.roles.includes(role) ? own.roles.filter((one) => one !== role) : [...own.roles, role],
    })
  const reads = own.command !== 'insert'
  const writes = own.command !== 'select' && own.command !== 'delete'
  return html`<${Field} label="Name" required maxlength="63" autocomplete="off" spellcheck=${false} value=${own.name} onInput=${take((name) => change({ name }))} />
    <${Field} label="For" value=${own.command} onChange=${take((command) => change({ command, ...(command === 'insert' ? { using: '' } : {}), ...(command === 'select' || command === 'delete' ? { check: '' } : {}) }))}>
      ${COMMANDS.map((command) => html`<option value=${command}>${command}</option>`)}
    <//>
    <fieldset class="choices"><legend>Callers</legend>
      ${roles.map((role) => html`<${Check} label=${role} checked=${own.roles.includes(role)} onChange=${() => turn(role)} />`)}
    </fieldset>
    ${reads && html`<${Field} label="Rows that are there" required autocomplete="off" spellcheck=${false} placeholder="shared and not done" value=${own.using} onInput=${take((using) => change({ using }))} />`}
    ${writes && html`<${Field} label="Rows that are written" required=${own.command === 'insert'} autocomplete="off" spellcheck=${false} placeholder=${own.command === 'insert' ? 'true' : 'the same'} value=${own.check} onInput=${take((check) => change({ check }))} />`}
    <p class="hint">Columns, constants, operators, usual functions, subqueries, and the claims: <code>current_setting('request.claims')::json ->> 'user_id'</code>.</p>`
}
