import { useId, useState } from 'preact/hooks'
import { ApiError } from '../../api.js'
import { Failure } from '../../controls.js'
import { Dialog } from '../../dialogs.js'
import { useAct } from '../../hooks.js'
import { html } from '../../html.js'
import { say } from '../../messages.js'
import { take } from '../../sign-in.js'
import { countOf, Value } from '../../values.js'
import { deleteRows, insertRows, isWhole, nameOf, refused } from './edit.js'
import { tableId } from './edit-state.js'
import { choicesOf, emptyOf, isJson, mayBeNull, problemOf } from './edit-types.js'
import { referrers } from './relations.js'
import { remember } from './undo.js'

/**
 * @typedef {import('./edit.js').Place} Place
 * @typedef {import('./edit.js').Structure} Structure
 * @typedef {import('./edit.js').Row} Row
 * @typedef {import('./edit-types.js').Column} Column
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

/**
 * What a deletion says before it is done.
 * @param {Place} place
 * @param {Structure} structure
 * @param {readonly Row[]} rows
 * @returns {Promise<Omit<Extract<import('../../api.js').Question, { kind: 'consent' }>, 'kind'>>}
 */
export async function deletionOf(place, structure, rows) {
  const [first] = rows
  const which =
    rows.length === 1 && first !== undefined ? nameOf(structure.key, first) : countOf(rows.length, 'row')
  // Who may not read them all is asked without.
  const others = await referrers(place).catch(() => [])
  const lost = others
    .filter(({ definition }) => /ON DELETE CASCADE/.test(definition))
    .map(({ table }) => table)
  const emptied = others
    .filter(({ definition }) => /ON DELETE SET/.test(definition))
    .map(({ table }) => table)
  const notes = [
    rows.length === 1
      ? 'The row is deleted if it is as it is shown.'
      : 'Those rows are deleted that are as they are shown.',
    ...(lost.length > 0
      ? [
          `Rows of ${[...new Set(lost)].join(', ')} that refer to them go with them, and no undo brings these back.`,
        ]
      : []),
    ...(emptied.length > 0 ? [`Rows of ${[...new Set(emptied)].join(', ')} lose their reference.`] : []),
    ...(isWhole(structure) ? [] : ['This cannot be undone here, since the table has more than 200 columns.']),
  ]
  return {
    title: `Delete ${which} of ${place.table}?`,
    text: notes.join(' '),
    verb: `Delete ${countOf(rows.length, 'row')}`,
    isDangerous: true,
  }
}

/**
 * Deletes rows that are as they are shown, and tells of the others.
 * @param {Place} place
 * @param {Structure} structure
 * @param {readonly Row[]} rows
 */
export async function removeRows(place, structure, rows) {
  const deleted = await deleteRows(place, structure, rows)
  const left = rows.length - deleted.length
  if (deleted.length > 0) {
    say(`${countOf(deleted.length, 'row was', 'rows were')} deleted`)
    if (isWhole(structure)) rememberDelete(place, structure, deleted)
  }
  if (left > 0)
    throw refused(
      'changed_since',
      `${countOf(left, 'row has', 'rows have')} been changed or deleted by somebody else since, or a policy keeps you from deleting.`,
    )
}

/** @param {Place} place @param {Structure} structure @param {readonly Row[]} rows */
function rememberDelete(place, structure, rows) {
  const which = countOf(rows.length, 'row')
  const isComputed = structure.columns?.some(
    (column) => structure.key.includes(column.column_name) && !column.is_writable,
  )
  remember(tableId(place), `the deletion of ${which}`, async () => {
    const written = await insertRows(place, structure, rows)
    const others = othersIn(structure, rows, written)
    return `Inserted ${which} again${isComputed ? ', with a new key, which the database computes' : ''}${
      others.length > 0 ? `. Not as before: ${others.join(', ')}, which cannot be written as it was` : ''
    }`
  })
}

/**
 * Columns whose texts are others than before, and that the database does not compute. For example, the gateway writes the null of JSON as NULL.
 * @param {Structure} structure
 * @param {readonly Row[]} before
 * @param {readonly Row[]} after
 */
const othersIn = ({ columns = [] }, before, after) =>
  columns
    .filter(({ is_writable }) => is_writable)
    .map(({ column_name }) => column_name)
    .filter((name) => after.some((row, index) => row[name] !== before[index]?.[name]))
