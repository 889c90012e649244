import { useEffect, useRef, useState } from 'preact/hooks'
import { Check, Dialog, Failure, Field, say, take } from '../../controls.js'
import { html } from '../../html.js'
import { counted, countOf } from '../../values.js'
import { csvHead, csvOf, jsonOf, saveFile } from '../files.js'
import { isJson } from './edit.js'
import { readPart } from './export-pages.js'

/** Rows of the first request, and of one at most. */
const FIRST = 100
const MOST = 1_000
/** Characters that a request may answer, about. */
const CHARACTERS = 4_000_000

/**
 * What has been written so far. After a failure it goes on from there.
 * @typedef {{ parts: Blob[], count: number, from: import('./export-pages.js').Position | undefined, limit: number }} Work
 */

/**
 * The rows of the filters and the order that are shown, as a file. They are read in parts, each from the last row of the one before on, and not by
 * an offset.
 * @param {import('./export-pages.js').Asked & { total: number, onClose: () => void }} props
 */
export function ExportDialog({ total, onClose, ...asked }) {
  const [format, setFormat] = useState(/** @type {string} */ ('csv'))
  const [isNeutral, setNeutral] = useState(true)
  const [count, setCount] = useState(/** @type {number | undefined} */ (undefined))
  const [failure, setFailure] = useState(/** @type {unknown} */ (undefined))
  const leaving = useRef(new AbortController())
  const work = useRef(/** @type {Work} */ ({ parts: [], count: 0, from: { offset: 0 }, limit: FIRST }))
  useEffect(() => () => leaving.current.abort(), [])

  const run = async () => {
    const { current } = work
    const { signal } = leaving.current
    setFailure(undefined)
    setCount(current.count)
    try {
      while (current.from !== undefined) {
        await readOn(current, asked, { format, isNeutral, signal })
        setCount(current.count)
      }
    } catch (error) {
      if (!signal.aborted) setFailure(error)
      return
    }
    if (signal.aborted) return
    saveFile(`${asked.place.table}.${format}`, new Blob(current.parts, { type: TYPES[format] ?? '' }))
    say(`Exported ${countOf(current.count, 'row')}`)
    onClose()
  }
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    void run()
  }
  return html`<${Dialog} title=${`Export ${asked.place.table}`} onClose=${onClose}>
    ${
      count === undefined
        ? html`<form onSubmit=${submit}>
      <p>The rows of the filters and the order that are shown, with all columns.</p>
      <${Field} label="Format" value=${format} onChange=${take(setFormat)}><option value="csv">CSV</option><option value="json">JSON</option><//>
      ${format === 'csv' && html`<p><${Check} label="Neutralise what a spreadsheet would take for a formula, by an apostrophe" checked=${isNeutral} onChange=${() => setNeutral(!isNeutral)} /></p>`}
      ${asked.structure.key.length === 0 && html`<p class="fine">Without a primary key, rows that are written meanwhile may be missing or there twice.</p>`}
      <div class="row"><button class="primary">Export</button><button type="button" onClick=${onClose}>Cancel</button></div>
    </form>`
        : html`<p role="status">${counted(count)} of about ${counted(Math.max(total, count))} rows</p>
      <progress aria-label="Rows that were read" max=${Math.max(total, count, 1)} value=${count}></progress>
      <${Failure} of=${failure} />
      <div class="row">${failure !== undefined && html`<button type="button" class="primary" onClick=${run}>Go on</button>`}
        <button type="button" onClick=${onClose}>Cancel</button></div>`
    }
  <//>`
}

/**
 * Reads and writes the next part.
 * @param {Work} work
 * @param {import('./export-pages.js').Asked} asked
 * @param {{ format: string, isNeutral: boolean, signal: AbortSignal }} how
 */
async function readOn(work, asked, { format, isNeutral, signal }) {
  const isFirst = work.parts.length === 0
  const { rows, next } = await readPart(asked, work.from ?? { offset: 0 }, work.limit, signal)
  const { columns = [] } = asked.structure
  const json = new Set(columns.filter(isJson).map(({ column_name }) => column_name))
  const how = { neutral: isNeutral, json }
  const names = asked.structure.columns?.map(({ column_name }) => column_name) ?? Object.keys(rows[0] ?? {})
  const text =
    format === 'csv'
      ? `${isFirst ? csvHead(names, how) : ''}${csvOf(names, rows, how)}`
      : `${rows.length === 0 && isFirst ? '[' : jsonOf(rows, isFirst)}${next === undefined ? '\n]\n' : ''}`
  // The browser keeps it, on the disk if it is large.
  work.parts.push(new Blob([text]))
  work.count += rows.length
  work.from = next
  const most = Math.floor((CHARACTERS * rows.length) / Math.max(1, text.length))
  work.limit = Math.max(1, Math.min(MOST, 2 * work.limit, most))
}

const TYPES = /** @type {Readonly<Record<string, string>>} */ ({ csv: 'text/csv', json: 'application/json' })
