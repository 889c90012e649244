import { createStore, useStore } from '../../hooks.js'
import { html } from '../../html.js'
import { session } from '../../session.js'
import { countOf, Time, Value } from '../../values.js'

/** @typedef {{ id: number, at: string, client: string, text: string, outcome: string }} Entry */

const KEPT = 100
const entries = createStore(/** @type {readonly Entry[]} */ ([]))
/** What is in the editor, while one looks at another screen. @type {Map<string, string>} */
export const drafts = new Map()
let last = 0

// It is in the memory of this page alone, and of one person.
session.follow(() => {
  if (session.get().kind !== 'out') return
  entries.set([])
  drafts.clear()
})

/** @param {{ client: string, text: string, outcome: string }} run */
export function remember(run) {
  const entry = { ...run, id: ++last, at: new Date().toISOString() }
  entries.set([entry, ...entries.get()].slice(0, KEPT))
}

/** The statements of a client that were run from this page. @param {{ client: string, onChoose: (text: string) => void }} props */
export function History({ client, onChoose }) {
  const all = useStore(entries).filter((entry) => entry.client === client)
  if (all.length === 0) return null
  return html`<details class="history"><summary>History: ${countOf(all.length, 'run')}</summary>
    <ul class="list">${all.map(
      ({ id, at, text, outcome }) => html`<li key=${id} class="line">
        <button type="button" class="past" title="Put it into the editor" onClick=${() => onChoose(text)}><code><${Value} value=${text.trim()} most=${200} /></code></button>
        <span class="soft"><${Value} value=${outcome} /> · <${Time} at=${at} /></span></li>`,
    )}</ul>
    <p class="fine">It is kept until this page is closed or you sign out, and nowhere else.</p>
  </details>`
}
