import { useId, useState } from 'preact/hooks'
import { ApiError } from '../../api.js'
import { Dialog, Failure, say, take } from '../../controls.js'
import { useAct } from '../../hooks.js'
import { html } from '../../html.js'
import { Value } from '../../values.js'
import { choicesOf, emptyOf, isJson, mayBeNull, nameOf, problemOf, refused } from './edit.js'
import { remember, tableId } from './edit-state.js'
import { deleteRows, insertRows } from './write-rows.js'

/**
 * @typedef {import('./edit.js').Place} Place
 * @typedef {import('./edit.js').Structure} Structure
 * @typedef {import('./edit.js').Row} Row
 * @typedef {import('./edit.js').Column} Column
 */

/** A new row. What is not typed is left to the database. @param {{ place: Place, structure: Structure, onClose: () => void, onDone: () => void }} props */
export function InsertDialog({ place, structure, onClose, onDone }) {
  const [typed, setTyped] = useState(/** @type {ReadonlyMap<string, string | null>} */ (new Map()))
  const { run, isBusy, failure } = useAct()
  const columns = (structure.columns ?? []).filter(({ is_writable }) => is_writable)
  const typedFirst = columns.filter(({ column_default: fallback }) => fallback === null)
  const first = typedFirst.find((column) => !mayBeNull(column)) ?? typedFirst[0] ?? columns[0]
  const set = (/** @type {string} */ name, /** @type {string | null | undefined} */ value) => {
    const next = new Map(typed)
    if (value === undefined) next.delete(name)
    else next.set(name, value)
    setTyped(next)
  }
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    return run(async () => {
      const problems = columns.flatMap((column) => {
        const problem = problemOf(column, typed.get(column.column_name) ?? null)
        return problem === undefined ? [] : [new FieldError(column.column_name, problem)]
      })
      if (problems[0] !== undefined) throw problems[0]
      const [row] = await insertRows(place, structure, [Object.fromEntries(typed)])
      if (row !== undefined) rememberInsert(place, structure, row)
      say(row === undefined ? 'The row was inserted' : `Inserted ${nameOf(structure.key, row) || 'a row'}`)
      onDone()
      onClose()
    })
  }
  const wrong = columnsOf(failure)
  const isOfField = columns.some(({ column_name }) => wrong.includes(column_name))
  return html`<${Dialog} title=${`New row of ${place.table}`} onClose=${onClose}>
    <form class="insert" onSubmit=${submit}>
      ${columns.map(
        (
          column,
        ) => html`<${NewValue} key=${column.column_name} column=${column} isFirst=${column === first} value=${typed.get(column.column_name)}
          onChange=${(/** @type {string | null | undefined} */ value) => set(column.column_name, value)}
          failure=${wrong.includes(column.column_name) ? failure : undefined} />`,
      )}
      ${columns.length === 0 && html`<p>The database computes every column of this table.</p>`}
      ${!isOfField && html`<${Failure} of=${failure} />`}
      <div class="row"><button class="primary" disabled=${isBusy}>Insert</button><button type="button" onClick=${onClose}>Cancel</button></div>
    </form>
  <//>`
}

/** @param {{ column: Column, isFirst: boolean, value: string | null | undefined, onChange: (value: string | null | undefined) => void, failure: unknown }} props */
function NewValue({ column, isFirst, value, onChange, failure }) {
  const id = useId()
  const { column_name: name, data_type: type, column_default: fallback } = column
  const rest = fallback ?? (mayBeNull(column) ? 'NULL' : 'needed')
  const known = {
    ...{
      id,
      autofocus: isFirst,
      'aria-describedby': `${id}-hint`,
      'aria-invalid': failure !== undefined,
      onInput: take((text) => onChange(text === '' && emptyOf(column) === null ? undefined : text)),
    },
    ...{ value: value ?? '', placeholder: value === null ? 'NULL' : value === '' ? 'empty text' : rest },
  }
  const choices = choicesOf(column)
  const choose = take((chosen) =>
    onChange(chosen === '' ? undefined : chosen === 'null' ? null : chosen.slice(1)),
  )
  return html`<div class="field">
    <label for=${id}><${Value} value=${name} most=${63} /> <span class="type">${type}</span></label>
    ${
      choices !== undefined
        ? html`<select id=${id} autofocus=${isFirst} aria-describedby=${`${id}-hint`} value=${value === undefined ? '' : value === null ? 'null' : `=${value}`} onChange=${choose}>
            <option value="">${rest}</option>${mayBeNull(column) && html`<option value="null">NULL</option>`}
            ${choices.map((one) => html`<option value=${`=${one}`}>${one}</option>`)}</select>`
        : isJson(column) || value?.includes('\n')
          ? html`<textarea rows="3" spellcheck="false" ...${known}></textarea>`
          : html`<input autocomplete="off" spellcheck="false" dir="auto" ...${known} />`
    }
    <p class="hint" id=${`${id}-hint`}>${value === undefined ? (fallback === null ? '' : 'Left to the default. ') : value === '' ? 'The empty text. ' : ''}${
      value !== undefined &&
      html`<button type="button" class="plain" onClick=${() => onChange(undefined)}>Leave out</button>`
    }${
      value !== null &&
      mayBeNull(column) &&
      (fallback !== null || value !== undefined) &&
      choices === undefined &&
      html`<button type="button" class="plain" onClick=${() => onChange(null)}>NULL</button>`
    }</p>
    ${failure !== undefined && html`<${Failure} of=${failure instanceof FieldError ? failure.message : failure} />`}
  </div>`
}

/** What is wrong with a value, before it is sent. */
class FieldError extends Error {
  /** @param {string} column @param {string} message */
  constructor(column, message) {
    super(message)
    this.column = column
  }
}

/** The columns that a failure is about. @param {unknown} failure @returns {readonly string[]} */
function columnsOf(failure) {
  if (failure instanceof FieldError) return [failure.column]
  if (!(failure instanceof ApiError)) return []
  const { column, columns } = failure.details ?? {}
  return [column, ...(Array.isArray(columns) ? columns : [])].filter((one) => typeof one === 'string')
}

/** @param {Place} place @param {Structure} structure @param {Row} row */
function rememberInsert(place, structure, row) {
  if (structure.key.length === 0) return
  remember(tableId(place), `the insert of ${nameOf(structure.key, row)}`, async () => {
    const [deleted] = await deleteRows(place, structure, [row])
    if (deleted === undefined)
      throw refused(
        'changed_since',
        `The row ${nameOf(structure.key, row)} has been changed since, or is gone.`,
      )
    return `Deleted ${nameOf(structure.key, row)} again`
  })
}
