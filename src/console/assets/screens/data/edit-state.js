import { useLayoutEffect } from 'preact/hooks'
import { Failure, say } from '../../controls.js'
import { createStore, useAct, useStore } from '../../hooks.js'
import { html } from '../../html.js'
import { session } from '../../session.js'
import { Value } from '../../values.js'
import { keyOf, nameOf, problemOf, readRow, refused, writeValue } from './edit.js'

/**
 * An open cell. It stays while one looks at other pages and tables, and ends with its save or with Escape.
 * @typedef {import('./edit.js').Row} Row
 * @typedef {{ id: string, row: Row, column: import('./edit.js').Column, base: string | null, seen: string | null, text: string | null, isWide: boolean, isBusy: boolean, isGone: boolean, failure: unknown }} Edit
 * `base`: the text that the edit began with, `seen`: the newest one that is known.
 */

/** The open cell of each table. @type {import('../../hooks.js').Store<Readonly<Record<string, Edit>>>} */
export const edits = createStore(/** @type {Readonly<Record<string, Edit>>} */ ({}))

/** @param {import('./edit.js').Place} place */
export const tableId = ({ client, schema, table }) => JSON.stringify([client, schema, table])

/** @param {string} id @returns {Edit | undefined} */
export const editOf = (id) => edits.get()[id]

/**
 * @param {string} id
 * @param {readonly string[]} key
 * @param {Row} row
 * @param {import('./edit.js').Column} column
 * @param {boolean} isWide
 */
export function begin(id, key, row, column, isWide) {
  const base = row[column.column_name] ?? null
  const edit = {
    ...{ id: keyOf(key, row), row, column, base, seen: base, text: base, isWide },
    ...{ isBusy: false, isGone: false, failure: undefined },
  }
  edits.set({ ...edits.get(), [id]: edit })
}

/** @param {string} id @param {Partial<Edit>} changes */
export function change(id, changes) {
  const edit = editOf(id)
  if (edit !== undefined) edits.set({ ...edits.get(), [id]: { ...edit, ...changes } })
}

/** @param {string} id */
export function end(id) {
  const { [id]: _, ...others } = edits.get()
  edits.set(others)
}

/** @param {Edit} edit */
export const isChanged = ({ text, base }) => text !== base

/** Somebody else has written the cell meanwhile. @param {Edit} edit */
export const isContested = ({ seen, base }) => seen !== base

/**
 * Writes the open cell. True: it is written, and closed. Otherwise it stays as it is, and says why.
 * @param {import('./edit.js').Place} place
 * @param {import('./edit.js').Structure} structure
 * @param {(id: string, row: Row | undefined) => void} patch shows a row as it is now
 * @param {{ overwrites?: boolean }} [how] `overwrites`: what somebody else has written, which the person has seen
 */
export async function save(place, structure, patch, { overwrites = false } = {}) {
  const id = tableId(place)
  const edit = editOf(id)
  if (edit === undefined || edit.isBusy) return false
  const { row, column, text } = edit
  const from = overwrites ? edit.seen : edit.base
  if (text === from) {
    end(id)
    return true
  }
  const problem = problemOf(column, text)
  if (problem !== undefined) {
    change(id, { failure: problem })
    return false
  }
  change(id, { isBusy: true, failure: undefined, base: from })
  const names = Object.keys(row)
  try {
    const written = await writeValue(place, structure, { row, column, from, to: text, names })
    if (written === undefined) return await tellWhy(place, structure, patch)
    patch(edit.id, written)
    rememberWrite(place, structure, { column, from, written })
    end(id)
    return true
  } catch (failure) {
    change(id, { isBusy: false, failure })
    return false
  }
}

/**
 * No row was written: somebody has changed the cell, the row is gone, or a policy lets it be read and not written.
 * @param {import('./edit.js').Place} place
 * @param {import('./edit.js').Structure} structure
 * @param {(id: string, row: Row | undefined) => void} patch
 */
async function tellWhy(place, structure, patch) {
  const id = tableId(place)
  const edit = editOf(id)
  if (edit === undefined) return false
  const name = edit.column.column_name
  const now = await readRow(place, structure, edit.row, [name, ...Object.keys(edit.row)])
  if (now === undefined) {
    change(id, { isBusy: false, isGone: true })
    return false
  }
  patch(edit.id, now)
  const seen = now[name] ?? null
  const failure =
    seen === edit.base
      ? 'The row is as it was, and no row was written. A policy may let you read it and not change it.'
      : undefined
  change(id, { isBusy: false, seen, failure })
  return false
}

/**
 * @param {import('./edit.js').Place} place
 * @param {import('./edit.js').Structure} structure
 * @param {{ column: import('./edit.js').Column, from: string | null, written: Row }} done
 */
function rememberWrite(place, structure, { column, from, written }) {
  const { key } = structure
  const name = column.column_name
  remember(tableId(place), `the edit of ${name}`, async () => {
    const change = {
      row: written,
      column,
      from: written[name] ?? null,
      to: from,
      names: Object.keys(written),
    }
    const problem = problemOf(column, from)
    if (problem !== undefined) throw refused('cannot_be_written', problem)
    const before = await writeValue(place, structure, change)
    if (before === undefined)
      throw refused('changed_since', `${name} of ${nameOf(key, written)} has been changed since, or is gone.`)
    return `${name} of ${nameOf(key, before)} is as it was before`
  })
}

/**
 * Acts of this page that can be undone: by the inverse write, under the conditions that the act has left behind.
 * @typedef {{ table: string, label: string, undo: () => Promise<string> }} Undo
 */

/** The last one first. @type {import('../../hooks.js').Store<readonly Undo[]>} */
export const undos = createStore(/** @type {readonly Undo[]} */ ([]))

/** Acts that are remembered. */
const MOST = 100

/**
 * @param {string} table
 * @param {string} label what would be undone: `the edit of title`
 * @param {() => Promise<string>} undo resolves to what it has done. Rejects when nothing was done.
 */
export const remember = (table, label, undo) =>
  undos.set([{ table, label, undo }, ...undos.get()].slice(0, MOST))

/**
 * The button, and Ctrl+Z where nothing is typed.
 * @param {{ table: string, onDone: () => void }} props
 */
export function UndoButton({ table, onDone }) {
  const last = useStore(undos).find((one) => one.table === table)
  const { run, isBusy, failure, forget } = useAct()
  const undo = () => {
    if (last === undefined || isBusy) return
    run(async () => {
      const done = await last.undo()
      undos.set(undos.get().filter((one) => one !== last))
      say(done)
      onDone()
    })
  }
  // At once: a key before the next frame would undo an act that is no longer the last one, or nothing.
  useLayoutEffect(() => {
    const press = (/** @type {KeyboardEvent} */ event) => {
      if (event.key.toLowerCase() !== 'z' || !(event.ctrlKey || event.metaKey) || event.shiftKey) return
      const { target } = event
      if (target instanceof Element && target.matches('input:not([type=checkbox]), select, textarea')) return
      if (document.querySelector('dialog[open]') !== null) return
      event.preventDefault()
      undo()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  })
  const drop = () => {
    undos.set(undos.get().filter((one) => one !== last))
    forget()
  }
  return html`${
    last !== undefined &&
    html`<button type="button" disabled=${isBusy} onClick=${undo} title="Writes what was there before, if nobody has changed it since (Ctrl+Z)">
      Undo <${Value} value=${last.label} most=${80} /></button>`
  }
  ${
    failure !== undefined &&
    html`<div class="whole"><${Failure} of=${failure} />
    <button type="button" onClick=${drop}>Keep it as it is</button></div>`
  }`
}

/** Whose open cells and acts these are. */
const ownerOf = () => {
  const state = session.get()
  return state.kind === 'in'
    ? (state.caller.person?.id ?? `${state.caller.name} ${state.caller.detail}`)
    : undefined
}
let owner = ownerOf()
session.follow(() => {
  const next = ownerOf()
  if (next === owner) return
  owner = next
  edits.set({})
  undos.set([])
})
