import { useEffect, useRef, useState } from 'preact/hooks'
import { Check, Failure, Pending, Title, take } from '../controls.js'
import { useLoad } from '../hooks.js'
import { html } from '../html.js'
import { addressOf, go } from '../router.js'
import { clientsOf, mayQuery } from '../session.js'
import { History, remember } from './sql/history.js'
import { EditorHost } from './sql/host.js'
import { Plan } from './sql/plan.js'
import { Result, summaryOf } from './sql/result.js'
import { explain, positionIn, runSql } from './sql/run.js'

/**
 * SQL on a client. The text comes from the person alone, never from an address, and nothing is run until the person says so.
 * @param {import('../router.js').ViewProps} props
 */
export function View({ caller, query }) {
  const { data, failure, reload } = useLoad((signal) => clientsOf(caller, signal), [caller])
  const names = data?.filter((name) => mayQuery(caller, name)) ?? []
  const client = query.client ?? names[0]
  const choose = take((name) => go(addressOf('/sql', { client: name })))
  return html`<${Title} title="SQL">
      ${client !== undefined && html`<label>Client <select value=${client} onChange=${choose}>${names.map((name) => html`<option value=${name}>${name}</option>`)}</select></label>`}
    <//>
    <${Pending} of="the clients" data=${data} failure=${failure} again=${reload} />
    ${data !== undefined && client === undefined && html`<p>There is no client on which you may run SQL.</p>`}
    ${data !== undefined && client !== undefined && html`<${Workbench} key=${client} client=${client} />`}`
}

/** @typedef {import('./sql/run.js').Ran | import('./sql/run.js').Planned | { kind: 'none' } | { kind: 'running' } | { kind: 'cancelled' } | { kind: 'failed', failure: unknown, at: number | undefined }} Outcome */

/** @param {{ client: string }} props */
function Workbench({ client }) {
  const editor = useRef(/** @type {import('./sql/editor.js').Editor | undefined} */ (undefined))
  const running = useRef(/** @type {AbortController | undefined} */ (undefined))
  const [outcome, setOutcome] = useState(/** @type {Outcome} */ ({ kind: 'none' }))
  const [measures, setMeasures] = useState(false)
  // Who leaves does not see the end of a statement any more.
  useEffect(() => () => running.current?.abort(), [])
  const isRunning = outcome.kind === 'running'

  /** @param {(text: string, signal: AbortSignal) => Promise<Outcome | undefined>} work */
  const begin = async (work) => {
    const { text, from } = editor.current?.chosen() ?? { text: '', from: 0 }
    if (text.trim() === '' || running.current !== undefined) return
    const aborting = new AbortController()
    running.current = aborting
    setOutcome({ kind: 'running' })
    editor.current?.mark(undefined)
    const done = await work(text, aborting.signal).catch((failure) => {
      if (aborting.signal.aborted) return /** @type {Outcome} */ ({ kind: 'cancelled' })
      const at = positionIn(failure, text)
      return /** @type {Outcome} */ ({
        kind: 'failed',
        failure,
        at: at === undefined ? undefined : from + at,
      })
    })
    running.current = undefined
    if (done?.kind === 'failed' && done.at !== undefined) editor.current?.mark(done.at)
    if (done !== undefined) remember({ client, text, outcome: saidOf(done) })
    setOutcome(done ?? { kind: 'none' })
  }
  const run = () => begin((text, signal) => runSql(client, text, signal))
  const plan = () => begin((text, signal) => explain(client, text, { measures, signal }))

  return html`<div class="sql">
    <${EditorHost} client=${client} editor=${editor} onRun=${run} />
    <div class="tools">
      <button type="button" class="primary" disabled=${isRunning} onClick=${run}>Run <kbd>Ctrl</kbd> <kbd>Enter</kbd></button>
      ${isRunning && html`<button type="button" class="danger" onClick=${() => running.current?.abort()}>Cancel</button>`}
      <button type="button" disabled=${isRunning} onClick=${plan}>Explain</button>
      <${Check} label="Measure (ANALYZE runs the statement)" checked=${measures} onChange=${() => setMeasures(!measures)} />
      <span class="soft">What is selected, or all of it</span>
    </div>
    <${Shown} outcome=${outcome} editor=${editor} />
    <${History} client=${client} onChoose=${(/** @type {string} */ text) => editor.current?.replace(text)} />
  </div>`
}

/** @param {Outcome} outcome */
function saidOf(outcome) {
  if (outcome.kind === 'rows') return summaryOf(outcome.meta)
  return outcome.kind === 'plan' ? 'explained' : outcome.kind
}

/** @param {{ outcome: Outcome, editor: { current: import('./sql/editor.js').Editor | undefined } }} props */
function Shown({ outcome, editor }) {
  if (outcome.kind === 'rows') return html`<${Result} key=${outcome} ran=${outcome} />`
  if (outcome.kind === 'plan') return html`<${Plan} planned=${outcome} />`
  if (outcome.kind === 'running') return html`<p class="loading" role="status">Running …</p>`
  if (outcome.kind === 'cancelled')
    return html`<p class="empty" role="status">Cancelled. The statement was ended, and what it had changed was undone, unless it had committed.</p>`
  if (outcome.kind === 'none') return null
  const { failure, at } = outcome
  const place = at === undefined ? undefined : editor.current?.placeOf(at)
  return html`<${Failure} of=${failure} />
    ${place !== undefined && at !== undefined && html`<p><button type="button" onClick=${() => editor.current?.goTo(at)}>Go to line ${place.line}, column ${place.column}</button></p>`}`
}
