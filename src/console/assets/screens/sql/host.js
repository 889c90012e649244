import { useEffect, useRef, useState } from 'preact/hooks'
import { Failure, take } from '../../controls.js'
import { useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { drafts } from './history.js'
import { createNames, createOffers } from './names.js'

/** @typedef {import('./editor.js').Editor} Editor */

/**
 * Where SQL is written: a text area, until the editor is loaded and takes its place, with what was typed and selected and with the focus.
 * @param {{ client: string, editor: { current: Editor | undefined }, onRun: () => void }} props
 */
export function EditorHost({ client, editor, onRun }) {
  const host = useRef(/** @type {HTMLDivElement | null} */ (null))
  const area = useRef(/** @type {HTMLTextAreaElement | null} */ (null))
  const [before] = useState(() => drafts.get(client) ?? '')
  const [isComposing, setComposing] = useState(false)
  const [isLoaded, setLoaded] = useState(false)
  // The editor is made once, and calls what was rendered last.
  const latest = useRef(onRun)
  latest.current = onRun
  const { data, failure } = useLoad(loadEditor, [])
  const keep = (/** @type {string} */ text) => void drafts.set(client, text)
  useEffect(() => {
    if (area.current !== null) editor.current = plainEditor(area.current, keep)
    return () => {
      editor.current?.end()
      editor.current = undefined
    }
  }, [])
  useEffect(() => {
    const plain = area.current
    // What is being composed would be lost.
    if (data === undefined || isComposing || host.current === null || plain === null) return
    const typed = { text: plain.value, from: plain.selectionStart, to: plain.selectionEnd }
    const hadFocus = document.activeElement === plain
    ;[plain.hidden, host.current.hidden] = [true, false]
    editor.current = data.createEditor(host.current, {
      ...{ text: before, typed, hadFocus, onRun: () => latest.current(), onChange: keep },
      offers: createOffers(createNames(client)),
    })
    setLoaded(true)
  }, [data, isComposing])
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    onRun()
  }
  return html`<div class="editor" ref=${host} hidden=${!isLoaded}></div>
    ${
      !isLoaded &&
      html`<textarea class="editor" ref=${area} aria-label="SQL" spellcheck="false" placeholder="select …" defaultValue=${before} onKeyDown=${press}
        onInput=${take(keep)} onCompositionStart=${() => setComposing(true)} onCompositionEnd=${() => setComposing(false)}></textarea>`
    }
    ${failure !== undefined && html`<${Failure} of="The editor could not be loaded, so that this is a field without colours and offers. Load the page again." again=${() => location.reload()} />`}`
}

/**
 * @param {HTMLTextAreaElement} area
 * @param {(text: string) => void} onChange
 * @returns {Editor}
 */
const plainEditor = (area, onChange) => ({
  text: () => area.value,
  chosen() {
    const { value, selectionStart: from, selectionEnd: to } = area
    return from === to ? { text: value, from: 0 } : { text: value.slice(from, to), from }
  },
  replace(text) {
    area.value = text
    onChange(text)
  },
  mark() {},
  goTo(at) {
    area.focus()
    area.setSelectionRange(at, at)
  },
  placeOf(at) {
    const lines = area.value.slice(0, at).split('\n')
    return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 }
  },
  end() {},
})

/**
 * The editor comes with its packages, which are asked for at once and not each by the one before.
 */
const loadEditor = async () => {
  const packages = PACKAGES.map((name) => import(name))
  const [editor] = await Promise.all([import('./editor.js'), ...packages])
  return editor
}
const PACKAGES = [
  ...['@codemirror/view', '@codemirror/state', '@codemirror/language', '@codemirror/commands'],
  ...[
    '@codemirror/autocomplete',
    '@codemirror/lang-sql',
    '@codemirror/streamparser',
    '@lezer/common',
    '@lezer/highlight',
    '@lezer/lr',
  ],
  ...['style-mod', 'crelt', 'w3c-keyname', '@marijn/find-cluster-break'],
]
