import { useRef, useState } from 'preact/hooks'
import { ApiError, ask, call } from '../../api.js'
import { Failure, Field, take } from '../../controls.js'
import { useAct } from '../../hooks.js'
import { html } from '../../html.js'
import { callLines } from '../../long-answers.js'
import { goWith } from '../../router.js'
import { counted, countOf } from '../../values.js'
import { ClientField, useClients } from '../client-field.js'
import { TextArea } from '../text-area.js'
import { definitionIn, draftOf, keepDraft, NotJson, placeOf, STARTERS, textFrom } from './drafts.js'
import { DryRun, Ran, SHOWN } from './result.js'

/**
 * @typedef {import('./drafts.js').Definition} Definition
 * @typedef {import('./drafts.js').Named} Named
 * @typedef {import('./result.js').Result} Result
 * @typedef {{ rows_fetched: number, rows_inserted: number, rows_refused: number }} Progress
 * @typedef {{ signal: AbortSignal, onProgress: (progress: Progress) => void }} Following
 * @typedef {{ dry: true, input: readonly import('./result.js').Row[], sink: string, result: Result } | { dry: false, result: Result }} Outcome
 */

/** @param {string} from @param {readonly Named[]} named @returns {Definition} */
function beginning(from, named) {
  if (Object.hasOwn(STARTERS, from)) return STARTERS[from]?.definition ?? {}
  return named.find(({ name }) => `named:${name}` === from)?.definition ?? {}
}

/** @param {Definition | undefined} end */
const tableOf = ({ table_name: name, table, view_name: view } = {}) =>
  String(name ?? table ?? view ?? 'no table yet')

/** A definition as text, and what comes of it. @param {{ from: string, named: readonly Named[], caller: import('../../session.js').Caller, client: string | undefined }} props */
export function Editor({ from, named, caller, client: asked }) {
  const clients = useClients(caller)
  const client = asked ?? clients[0] ?? 'default'
  const original = textFrom(beginning(from, named))
  const [text, setText] = useState(() => draftOf(from) ?? original)
  const [outcome, setOutcome] = useState(/** @type {Outcome | undefined} */ (undefined))
  const place = useRef(/** @type {HTMLElement | null} */ (null))
  const work = useStoppable()
  const type = (/** @type {string} */ next) => {
    setText(next)
    keepDraft(from, next === original ? undefined : next)
  }
  const startOver = async () => {
    const question = { title: 'Begin again?', text: 'What was typed here is lost.', verb: 'Begin again' }
    if (await ask({ kind: 'consent', isDangerous: true, ...question })) type(original)
  }
  /** @param {(definition: Definition, following: Following) => Promise<Outcome>} how */
  const attempt = (how) =>
    work.run(async (following) => {
      setOutcome(undefined)
      try {
        setOutcome(await how(definitionIn(text), following))
      } catch (failure) {
        pointAt(place.current?.querySelector('textarea') ?? undefined, failure)
        throw failure
      }
    })
  const dryRun = () =>
    attempt(async (body, following) => {
      // First, since its failure says more about the definition.
      const asked = { method: 'POST', client, body, ...following }
      const result = await callLines('/pipelines/simulate', asked)
      const input = await inputOf(body.source, client, following.signal)
      return { dry: true, input, sink: tableOf(body.sink), result }
    })
  const run = async () => {
    if (!(await agreesTo(text, client))) return
    await attempt(async (definition, following) => {
      // By its name where it is as in the file, so that the log has the name.
      const body =
        text === original && from.startsWith(NAMED) ? { pipeline: from.slice(NAMED.length) } : definition
      return {
        dry: false,
        result: await callLines('/pipelines', { method: 'POST', client, body, ...following }),
      }
    })
  }
  return html`<div class="pipeline-start">
      <${Field} label="Begin from" value=${from} onChange=${take((next) => goWith({ from: next }))}>
        ${Object.entries(STARTERS).map(([name, { title }]) => html`<option value=${name}>${title}</option>`)}
        ${named.map(({ name }) => html`<option value=${NAMED + name}>${name}</option>`)}
      <//>
      <${ClientField} clients=${clients} value=${client} onChange=${(/** @type {string} */ next) => goWith({ client: next }, { replaces: true })} />
    </div>
    <div ref=${place}><${TextArea} label="Definition" rows="16" value=${text} onInput=${take(type)} aria-invalid=${work.failure !== undefined}
      hint="JSON with source, transform and sink, on this client where an end names none. A dry run stores nothing. In pipelines.yaml of the service a definition gets a name." /></div>
    <${Failure} of=${work.failure} />
    <${Stored} of=${work.failure} />
    <div class="row acts">
      <button type="button" class="primary" disabled=${work.isBusy} onClick=${dryRun}>Dry run</button>
      <button type="button" disabled=${work.isBusy} onClick=${run}>Run</button>
      ${
        work.isBusy
          ? html`<button type="button" onClick=${work.stop}>Stop</button><${Under} way=${work.progress} />`
          : text !== original &&
            html`<button type="button" class="plain" onClick=${startOver}>Begin again</button>`
      }
    </div>
    ${outcome?.dry === true && html`<${DryRun} input=${outcome.input} result=${outcome.result} sink=${outcome.sink} />`}
    ${outcome?.dry === false && html`<${Ran} result=${outcome.result} />`}`
}

const NAMED = 'named:'

/** Text that is no definition is refused by the run itself. @param {string} text @param {string} client */
async function agreesTo(text, client) {
  try {
    const { source, sink } = definitionIn(text)
    const says = `Rows of ${tableOf(source)} on ${source?.client ?? client} go into ${tableOf(sink)} on ${sink?.client ?? client}. What is stored stays, also when you stop the run.`
    return await ask({ kind: 'consent', title: 'Run the pipeline?', text: says, verb: 'Run the pipeline' })
  } catch {
    return true
  }
}

/** The first rows that the source has. @param {Definition | undefined} source @param {string} client @param {AbortSignal} signal */
async function inputOf(source = {}, client, signal) {
  const { client: own = client, limit = SHOWN, ...fetch } = source
  const body = { ...fetch, limit: Math.min(limit, SHOWN) }
  const { data } = await call('/gateway/fetch', { method: 'POST', client: own, body, signal })
  return data
}

/** Marks what a failure is about. @param {HTMLTextAreaElement | undefined} area @param {unknown} failure */
function pointAt(area, failure) {
  const place = placeIn(area?.value ?? '', failure)
  if (area === undefined || place === undefined) return
  area.focus()
  area.setSelectionRange(...place)
}

/** @param {string} text @param {unknown} failure @returns {readonly [start: number, end: number] | undefined} */
function placeIn(text, failure) {
  if (failure instanceof NotJson) return [failure.position, failure.position + 1]
  const { field, column, table } = (failure instanceof ApiError && failure.details) || {}
  const name = field ?? column ?? table
  return typeof name === 'string' ? placeOf(text, name) : undefined
}

/** How far it is. @param {{ way: Progress | undefined }} props */
const Under = ({ way }) =>
  html`<span role="status">Running …${
    way !== undefined &&
    ` ${countOf(way.rows_fetched, 'row')} read, ${counted(way.rows_inserted)} stored, ${counted(way.rows_refused)} refused`
  }</span>`

/** The rows that a run had stored when it failed. @param {{ of: unknown }} props */
function Stored({ of: failure }) {
  const {
    step,
    client,
    rows_inserted: stored,
    rows_in_doubt: doubt,
  } = (failure instanceof ApiError && failure.details) || {}
  if (stored === undefined && step === undefined) return null
  return html`<p class="acts">${step !== undefined && `It failed at the ${step}, on ${client}. `}${
    stored !== undefined && `${countOf(Number(stored), 'row is', 'rows are')} stored. `
  }${doubt !== undefined && `Of ${countOf(Number(doubt), 'row')} the outcome is not known.`}</p>`
}

/** An act that one can stop, and follow. It goes on when one looks at another screen. */
function useStoppable() {
  const { run, isBusy, failure } = useAct()
  const [progress, setProgress] = useState(/** @type {Progress | undefined} */ (undefined))
  const stopping = useRef(/** @type {AbortController | undefined} */ (undefined))
  return {
    ...{ isBusy, failure, progress },
    stop: () => stopping.current?.abort(),
    run(/** @type {(following: Following) => Promise<void>} */ work) {
      setProgress(undefined)
      stopping.current = new AbortController()
      const { signal } = stopping.current
      return run(() =>
        work({ signal, onProgress: setProgress }).catch((error) => {
          throw signal.aborted
            ? new Error('It was stopped. The log has the rows that were stored until then.')
            : error
        }),
      )
    },
  }
}
