import { useEffect, useRef } from 'preact/hooks'
import { Dialog, Failure } from '../../controls.js'
import { useHadFocus } from '../../hooks.js'
import { html } from '../../html.js'
import { Value } from '../../values.js'
import { choicesOf, emptyOf, mayBeNull, nameOf, withLineBreaksOf } from './edit.js'
import { change, isChanged, isContested } from './edit-state.js'

/**
 * @typedef {import('./edit-state.js').Edit} Edit
 * @typedef {{ save: () => void, saveAndGo: (step: 1 | -1) => void, overwrite: () => void, cancel: () => void }} Acts
 */

/** The open cell, in its place. @param {{ table: string, edit: Edit, acts: Acts }} props */
export function CellEditor({ table, edit, acts }) {
  if (edit.isWide) return html`<${WideEditor} table=${table} edit=${edit} acts=${acts} />`
  return html`<div class="editor"><${Line} table=${table} edit=${edit} acts=${acts} /><${Outcome} edit=${edit} acts=${acts} /></div>`
}

/** The open cell of a row that is not among those that are shown. @param {{ table: string, keyNames: readonly string[], edit: Edit, acts: Acts }} props */
export function StrayEditor({ table, keyNames, edit, acts }) {
  if (edit.isWide) return html`<${WideEditor} table=${table} edit=${edit} acts=${acts} />`
  return html`<section class="panel stray" aria-label="The open cell">
    <p>The row of the open cell, <strong><${Value} value=${nameOf(keyNames, edit.row)} most=${80} /></strong>, is not among those below.</p>
    <div class="editor"><${Line} table=${table} edit=${edit} acts=${acts} />
      <div class="row"><button type="button" class="primary" disabled=${edit.isBusy} onClick=${acts.save}>Save</button>
        <button type="button" onClick=${acts.cancel}>Cancel</button></div>
      <${Outcome} edit=${edit} acts=${acts} /></div>
  </section>`
}

/** Takes the focus, also when the rows around it have moved. @param {boolean} isBusy */
function useFocus(isBusy) {
  const field = useRef(
    /** @type {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement | null} */ (null),
  )
  useEffect(() => {
    field.current?.focus()
    if (field.current instanceof HTMLInputElement) field.current.select()
  }, [])
  const had = useHadFocus(field)
  useEffect(() => {
    if (had.current && document.activeElement === document.body && !isBusy) field.current?.focus()
  })
  return field
}

/** @param {{ table: string, edit: Edit, acts: Acts }} props */
function Line({ table, edit, acts }) {
  const { column, text, isBusy } = edit
  const field = useFocus(isBusy)
  const set = (/** @type {string | null} */ next) => change(table, { text: next, failure: undefined })
  const leave = () => {
    // At once: the next key may be one of the grid.
    field.current?.closest('td')?.focus()
    acts.cancel()
  }
  const press = (/** @type {KeyboardEvent} */ event) => {
    event.stopPropagation()
    if (event.isComposing) return
    if (event.key === 'Enter') acts.save()
    else if (event.key === 'Escape') leave()
    else if (event.key === 'Tab') acts.saveAndGo(event.shiftKey ? -1 : 1)
    else if (event.key === 'Backspace' && text === '' && mayBeNull(column)) set(null)
    else return
    event.preventDefault()
  }
  const choices = choicesOf(column)
  const known = { 'aria-label': `New value of ${column.column_name}`, onKeyDown: press }
  if (choices !== undefined)
    return html`<${Choice} ...${known} column=${column} text=${text} choices=${choices} isBusy=${isBusy} onChoose=${set} field=${field} />`
  return html`<span class="line-editor"><input ref=${field} ...${known} dir="auto" autocomplete="off" spellcheck="false" readonly=${isBusy} aria-busy=${isBusy}
      value=${text ?? ''} placeholder=${placeholderOf(column, text)}
      onInput=${(/** @type {{ currentTarget: HTMLInputElement }} */ { currentTarget: { value } }) => set(value === '' ? emptyOf(column) : value)} />
    ${mayBeNull(column) && text !== null && html`<button type="button" tabindex="-1" class="plain" onClick=${() => set(null)}>NULL</button>`}
    <button type="button" tabindex="-1" class="plain" aria-label="Wide editor" title="Wide editor" onClick=${() => change(table, { isWide: true })}>⤢</button></span>`
}

/** @param {import('./edit.js').Column} column @param {string | null} text */
const placeholderOf = (column, text) =>
  text === null ? 'NULL' : mayBeNull(column) ? 'empty text; Backspace for NULL' : 'empty text'

/** @param {any} props */
function Choice({ field, column, text, choices, isBusy, onChoose, ...known }) {
  const choose = (/** @type {{ currentTarget: HTMLSelectElement }} */ { currentTarget: { value } }) =>
    onChoose(value === '' ? null : value.slice(1))
  return html`<select ...${known} ref=${field} disabled=${isBusy} value=${text === null ? '' : `=${text}`} onChange=${choose}>
    ${(mayBeNull(column) || text === null) && html`<option value="">NULL</option>`}
    ${choices.map((/** @type {string} */ one) => html`<option value=${`=${one}`}>${one === '' ? '(empty)' : one}</option>`)}
  </select>`
}

/** @param {{ table: string, edit: Edit, acts: Acts }} props */
function WideEditor({ table, edit, acts }) {
  const { column, text, base, isBusy } = edit
  const field = useFocus(isBusy)
  const set = (/** @type {string | null} */ next) => change(table, { text: next, failure: undefined })
  const press = (/** @type {KeyboardEvent} */ event) => {
    event.stopPropagation()
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    acts.save()
  }
  const input = (/** @type {{ currentTarget: HTMLTextAreaElement }} */ { currentTarget: { value } }) =>
    set(value === '' ? emptyOf(column) : withLineBreaksOf(value, base))
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    acts.save()
  }
  return html`<${Dialog} title=${`Edit ${column.column_name}`} onClose=${acts.cancel}>
    <form class="wide-editor" onSubmit=${submit} onKeyDown=${(/** @type {Event} */ event) => event.stopPropagation()}>
      <textarea ref=${field} rows="16" dir="auto" spellcheck="false" readonly=${isBusy} aria-busy=${isBusy} aria-label=${`New value of ${column.column_name}`}
        value=${text ?? ''} placeholder=${placeholderOf(column, text)} onInput=${input} onKeyDown=${press}></textarea>
      <${Outcome} edit=${edit} acts=${acts} />
      <div class="row"><button class="primary" disabled=${isBusy}>Save</button>
        ${mayBeNull(column) && html`<button type="button" disabled=${text === null} onClick=${() => set(null)}>NULL</button>`}
        <button type="button" onClick=${acts.cancel}>Cancel</button><span class="fine">Ctrl+Enter saves</span></div>
    </form>
  <//>`
}

/** What has come of the edit so far. @param {{ edit: Edit, acts: Acts }} props */
function Outcome({ edit, acts }) {
  const { failure, isGone, isBusy, seen, text } = edit
  if (isGone)
    return html`<div class="failure" role="alert"><p><strong>The row is gone.</strong></p>
      <p>Somebody has deleted it or changed its key, or a policy hides it from you. Copy what you typed if you need it.</p>
      <button type="button" onClick=${acts.cancel}>Close</button></div>`
  return html`<${Failure} of=${failure} />${
    isContested(edit) &&
    html`<div class="conflict" role="alert"><p><strong>Somebody has changed this cell.</strong></p>
      <dl><div><dt>Mine</dt><dd><${Value} value=${text} /></dd></div><div><dt>Theirs now</dt><dd><${Value} value=${seen} /></dd></div></dl>
      <div class="row"><button type="button" disabled=${isBusy} onClick=${acts.cancel}>Take theirs</button>
        ${isChanged(edit) && html`<button type="button" disabled=${isBusy} onClick=${acts.overwrite}>Write mine over it</button>`}</div></div>`
  }`
}
