import { useState } from 'preact/hooks'
import { Failure, take } from '../../controls.js'
import { html } from '../../html.js'
import { TextArea } from '../text-area.js'
import { withCondition } from './facts.js'

/** @type {readonly (readonly [string, string])[]} */
const COMPARISONS = [
  ['eq', '='],
  ['neq', '≠'],
  ['gt', '>'],
  ['gte', '≥'],
  ['lt', '<'],
  ['lte', '≤'],
  ['in', 'one of'],
  ['is', 'is'],
  ['like', 'like'],
]

/** The fixed conditions, as JSON of the gateway, and a row that adds one. @param {{ text: string, onText: (text: string) => void }} props */
export function Conditions({ text, onText }) {
  const [column, setColumn] = useState('')
  const [operator, setOperator] = useState('eq')
  const [value, setValue] = useState('')
  const [failure, setFailure] = useState(/** @type {unknown} */ (undefined))
  const add = () => {
    try {
      onText(withCondition(text, column.trim(), operator, value))
      setFailure(undefined)
      setColumn('')
      setValue('')
    } catch (error) {
      setFailure(error)
    }
  }
  /** Enter adds, and does not send the form around it. */
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'Enter') return
    event.preventDefault()
    if (column.trim() !== '') add()
  }
  return html`<fieldset class="choices"><legend>Fixed conditions</legend>
    <p class="hint">They hold for every row that is read or changed, and for every row as it is after a write.</p>
    <div class="tools">
      <label>Column <input autocomplete="off" maxlength="63" value=${column} onInput=${take(setColumn)} onKeyDown=${press} /></label>
      <label><span class="hidden">Comparison</span><select value=${operator} onChange=${take(setOperator)}>${COMPARISONS.map(
        ([name, sign]) => html`<option value=${name}>${sign}</option>`,
      )}</select></label>
      <label>Value <input autocomplete="off" placeholder="text, 5, true, [1, 2]" value=${value} onInput=${take(setValue)} onKeyDown=${press} /></label>
      <button type="button" disabled=${column.trim() === ''} onClick=${add}>Add</button>
    </div>
    <${Failure} of=${failure} />
    <${TextArea} label="All of them, as JSON" rows="3" value=${text} onInput=${take(onText)} placeholder='[{"column": "status", "operator": "eq", "value": "shown"}]' />
  </fieldset>`
}
