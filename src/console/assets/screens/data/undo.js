import { useEffect } from 'preact/hooks'
import { Failure } from '../../controls.js'
import { createStore, useAct, useStore } from '../../hooks.js'
import { html } from '../../html.js'
import { say } from '../../messages.js'
import { Value } from '../../values.js'

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
  useEffect(() => {
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
