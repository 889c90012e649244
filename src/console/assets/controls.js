import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from './api.js'
import { createStore, useAct, useLoad, useStore } from './hooks.js'
import { html } from './html.js'
import { addressOf, goWith } from './router.js'
import { counted, Value } from './values.js'

/**
 * What went wrong, by its code, and what to do.
 * @param {{ of: unknown, again?: () => void }} props
 */
export function Failure({ of: failure, again }) {
  if (failure === undefined) return null
  const known = failure instanceof ApiError ? failure : undefined
  return html`<div class="failure" role="alert">
    <p><strong><${Value} value=${known?.message ?? String(failure)} most=${1_000} /></strong></p>
    ${known?.hint !== undefined && html`<p><${Value} value=${known.hint} most=${1_000} /></p>`}
    ${known !== undefined && html`<p class="fine"><code>${known.code}</code>${known.requestId !== undefined && html` · request <code>${known.requestId}</code>`}</p>`}
    ${again !== undefined && html`<button type="button" onClick=${again}>Try again</button>`}
  </div>`
}

/** @param {{ label: string, hint?: string, children?: unknown } & Record<string, unknown>} props */
export function Field({ label, hint, children, ...input }) {
  const id = useId()
  const described = hint === undefined ? {} : { 'aria-describedby': `${id}-hint` }
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${
      children === undefined
        ? html`<input id=${id} ...${described} ...${input} />`
        : html`<select id=${id} ...${described} ...${input}>${children}</select>`
    }
    ${hint !== undefined && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
  </div>`
}

/** @param {{ label: string } & Record<string, unknown>} props */
export function Check({ label, ...input }) {
  return html`<label class="check"><input type="checkbox" ...${input} /> ${label}</label>`
}

/** @param {{ tone?: 'good' | 'warn' | 'bad' | 'plain', children?: unknown }} props */
export const Mark = ({ tone = 'plain', children }) => html`<span class=${`mark ${tone}`}>${children}</span>`

/** @param {{ title: string, note?: unknown, actions?: unknown, children?: unknown }} props */
export function Panel({ title, note, actions, children }) {
  const id = useId()
  return html`<section class="panel" aria-labelledby=${id}>
    <header><h2 id=${id}>${title}</h2>${note !== undefined && html`<span class="soft">${note}</span>`}<span class="actions">${actions}</span></header>
    ${children}
  </section>`
}

/**
 * @template Row
 * @typedef {{ name: string, title: unknown, cell: (row: Row) => unknown, sorts?: boolean, isNumber?: boolean }} Column
 */

/**
 * Rows, sorted by the address: `sort` and `dir`.
 * @template Row
 * @param {{ label: string, columns: readonly Column<Row>[], rows: readonly Row[], keyOf: (row: Row, index: number) => string, sort?: string | undefined, dir?: string | undefined, isBusy?: boolean, empty?: unknown }} props
 */
export function Table({ label, columns, rows, keyOf, sort, dir, isBusy = false, empty = 'Nothing here.' }) {
  return html`<div class="scroll" role="region" aria-label=${label} tabindex="0" aria-busy=${isBusy}>
    <table>
      <thead><tr>${columns.map((column) => html`<${Heading} column=${column} sort=${sort} dir=${dir} />`)}</tr></thead>
      <tbody>${rows.map(
        (row, index) =>
          html`<tr key=${keyOf(row, index)}>${columns.map(
            ({ name, cell, isNumber }) =>
              html`<td key=${name} class=${isNumber ? 'numeric' : undefined}>${cell(row)}</td>`,
          )}</tr>`,
      )}</tbody>
    </table>
    ${rows.length === 0 && html`<p class="empty">${empty}</p>`}
  </div>`
}

/** @param {{ column: Column<any>, sort: string | undefined, dir: string | undefined }} props */
export function Heading({ column: { name, title, sorts = false, isNumber = false }, sort, dir }) {
  const isSorted = sort === name
  const direction = isSorted ? (dir === 'desc' ? 'descending' : 'ascending') : undefined
  const turn = () =>
    goWith({ sort: name, dir: isSorted && dir !== 'desc' ? 'desc' : 'asc', offset: undefined })
  return html`<th scope="col" aria-sort=${direction} class=${isNumber ? 'numeric' : undefined}>${
    sorts
      ? html`<button type="button" class="sort" onClick=${turn}>${title}<span aria-hidden="true">${isSorted ? (dir === 'desc' ? ' ↓' : ' ↑') : ''}</span></button>`
      : title
  }</th>`
}

/**
 * The pages of a list, by a parameter of the address.
 * @param {{ name?: string, shown: number, offset: number, limit: number, total?: number | undefined, isEstimated?: boolean, hasMore?: boolean }} props
 */
export function Pager({ name = 'offset', shown, offset, limit, total, isEstimated = false, hasMore }) {
  const isLast = hasMore === undefined ? offset + shown >= (total ?? 0) : !hasMore
  const to = (/** @type {number} */ next) => () => goWith({ [name]: next <= 0 ? undefined : next })
  return html`<nav class="pager" aria-label="Pages">
    <span aria-live="polite">${shown === 0 ? 'None' : `${counted(offset + 1)}–${counted(offset + shown)}`}${
      total !== undefined && ` of ${isEstimated ? 'about ' : ''}${counted(total)}`
    }</span>
    <button type="button" disabled=${offset === 0} onClick=${to(offset - limit)}>Previous</button>
    <button type="button" disabled=${isLast} onClick=${to(offset + limit)}>Next</button>
  </nav>`
}

/** A line of a list: something, and what is said of it. @param {{ left: unknown, right?: unknown, note?: unknown }} props */
export const Line = ({ left, right, note }) => html`<li class="line">
  <span>${left}${note !== undefined && note !== null && html`<br /><span class="soft">${note}</span>`}</span>${right}
</li>`

/** @param {{ name: string, children?: unknown }} props */
export const Fact = ({ name, children }) => html`<div><dt>${name}</dt><dd>${children}</dd></div>`

/** @param {{ to: string, query?: Readonly<Record<string, string | number | undefined>>, children?: unknown }} props */
export const Link = ({ to, query, children }) => html`<a href=${addressOf(to, query)}>${children}</a>`

/** While something loads for the first time. @param {{ of: string }} props */
export const Loading = ({ of }) => html`<p class="loading" role="status">Loading ${of} …</p>`

/**
 * In place of what has not come: that it is loading, or why it has not come. Above what has come: why a later reading of it has failed.
 * @param {{ of: string, data?: unknown, failure: unknown, again?: () => void }} props
 */
export function Pending({ of, data, failure, again }) {
  if (failure !== undefined) return html`<${Failure} of=${failure} again=${again} />`
  return data === undefined && html`<${Loading} of=${of} />`
}

/**
 * A component that is loaded when it is first shown: `name` of a module.
 * @param {string} title
 * @param {() => Promise<any>} load
 * @param {string} [name]
 * @returns {import('preact').FunctionComponent<any>}
 */
export function later(title, load, name = 'View') {
  /** @type {import('preact').FunctionComponent<any> | undefined} */
  let loaded
  return function Later(props) {
    const { failure } = useLoad(async () => (loaded ??= (await load())[name]), [])
    if (loaded !== undefined) return html`<${loaded} ...${props} />`
    if (failure === undefined) return html`<${Loading} of=${title} />`
    // A module that was not found is remembered by the browser, so the page has to be loaded again.
    const says = `${title} could not be loaded. The service may have been updated: load the page again.`
    return html`<${Failure} of=${says} again=${() => location.reload()} />`
  }
}

/** The heading of a screen. It takes the focus when one has moved there. @param {{ title: string, children?: unknown }} props */
export function Title({ title, children }) {
  const heading = useRef(/** @type {HTMLHeadingElement | null} */ (null))
  // At once: who sees it may leave it before the next frame.
  useLayoutEffect(() => {
    document.title = `${title} · Gatehouse`
    if (hasMoved) heading.current?.focus({ preventScroll: true })
    hasMoved = true
  }, [title])
  return html`<div class="title"><h1 ref=${heading} tabindex="-1"><${Value} value=${title} most=${120} /></h1>${children}</div>`
}

/** The first screen leaves the focus to the browser. */
let hasMoved = false

export const Brand = () =>
  html`<p class="brand"><svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true"><path d="M8 26V14a8 8 0 0 1 16 0v12M13 26V15a3 3 0 0 1 6 0v11M5 26h22" /></svg>Gatehouse</p>`

/**
 * A dialog that keeps the focus. Escape closes it.
 * @param {{ title: string, onClose: () => void, children?: unknown }} props
 */
export function Dialog({ title, onClose, children }) {
  const id = useId()
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null))
  useEffect(() => {
    const before = document.activeElement
    dialog.current?.showModal()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  const cancel = (/** @type {Event} */ event) => {
    event.preventDefault()
    onClose()
  }
  return html`<dialog ref=${dialog} aria-labelledby=${id} onCancel=${cancel} onClose=${onClose}>
    <h2 id=${id}><${Value} value=${title} /></h2>
    ${children}
  </dialog>`
}

/**
 * A form in a dialog. Its failure stands in it, and what was typed stays.
 * @param {{ title: string, verb: string, onClose: () => void, work: () => Promise<unknown>, isDangerous?: boolean, children?: unknown }} props
 */
export function ActForm({ title, verb, onClose, work, isDangerous = false, children }) {
  const { run, isBusy, failure } = useAct()
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    return run(work)
  }
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form onSubmit=${submit}>
      ${children}
      <${Failure} of=${failure} />
      <div class="row">
        <button class=${isDangerous ? 'danger' : 'primary'} disabled=${isBusy}>${verb}</button>
        <button type="button" onClick=${onClose}>Cancel</button>
      </div>
    </form>
  <//>`
}

/**
 * The field of a list that searches when one stops typing. What it searches for is in the address, without what `clean` takes out.
 * @param {{ search: string, placeholder: string, clean?: (text: string) => string }} props
 */
export function Search({ search, placeholder, clean = (text) => text }) {
  const [text, setText] = useState(search)
  const input = useRef(/** @type {HTMLInputElement | null} */ (null))
  // The address has changed otherwise than by typing.
  useEffect(() => {
    if (document.activeElement !== input.current) setText(search)
  }, [search])
  useEffect(() => {
    if (text === search) return
    const waiting = setTimeout(() => goWith({ search: text, offset: undefined }, { replaces: true }), 250)
    return () => clearTimeout(waiting)
  }, [text, search])
  return html`<label>Search <input type="search" ref=${input} placeholder=${placeholder} value=${text} onInput=${take((typed) => setText(clean(typed)))} /></label>`
}

/** A form whose field with `autofocus` is focused when it appears. */
export function useFocus() {
  const form = useRef(/** @type {HTMLFormElement | null} */ (null))
  useEffect(() => {
    const field = form.current?.querySelector('[autofocus]')
    if (field instanceof HTMLElement) field.focus()
  }, [])
  return form
}

/** @param {(value: string) => void} set */
export const take = (set) => (/** @type {{ currentTarget: { value: string } }} */ event) =>
  set(event.currentTarget.value)

/** @typedef {{ id: number, text: string }} Message */

const messages = createStore(/** @type {readonly Message[]} */ ([]))
let last = 0

/** Tells that an act has succeeded. It goes by itself. @param {string} text */
export function say(text) {
  const message = { id: ++last, text }
  messages.set([...messages.get(), message])
  setTimeout(() => drop(message), 6_000)
}

/** @param {Message} message */
const drop = (message) => messages.set(messages.get().filter((one) => one !== message))

/** A screen reader follows only what is there before it changes, so this is there from the beginning. */
export function Messages() {
  return html`<div class="messages" role="status">${useStore(messages).map(
    (message) =>
      html`<p key=${message.id}><${Value} value=${message.text} /><button type="button" class="plain" onClick=${() => drop(message)}>Dismiss</button></p>`,
  )}</div>`
}
