import { useRef, useState } from 'preact/hooks'
import { Check, Failure, Field, Loading, Panel, Table } from '../../controls.js'
import { useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { take } from '../../sign-in.js'
import { counted, Value } from '../../values.js'
import { describe, noteChange } from './described.js'
import { guess, previewOf } from './import-file.js'
import { ImportResult } from './import-result.js'
import { importFile } from './import-run.js'

/**
 * @typedef {import('./import-run.js').Progress} Progress
 * @typedef {import('./import-run.js').Outcome} Outcome
 * @typedef {{ file: File, format: import('./import-file.js').Format, delimiter: string }} Chosen
 */

/** Rows of a file into this table. @param {import('./views.js').TableViewProps} props */
export function View({ at }) {
  const { data, failure, reload } = useLoad((signal) => describe(at, signal), [])
  const [chosen, setChosen] = useState(/** @type {Chosen | undefined} */ (undefined))
  const choose = async (/** @type {{ currentTarget: HTMLInputElement }} */ { currentTarget }) => {
    const [file] = currentTarget.files ?? []
    if (file === undefined) return setChosen(undefined)
    setChosen({ file, ...guess(file.name, await file.slice(0, 65_536).text()) })
  }
  return html`<${Panel} title="Import">
    <div class="padded">
      <${Field} label="File" type="file" accept=".csv,.tsv,.txt,.json,.jsonl,.ndjson" onChange=${choose}
        hint="CSV with a line of names, a JSON array of rows, or JSON lines, in UTF-8. It is read piece by piece, whatever its size." />
      <${Failure} of=${failure} again=${reload} />
      ${data === undefined && failure === undefined && html`<${Loading} of="the columns" />`}
      ${
        chosen !== undefined &&
        data !== undefined &&
        html`<${Options} key=${`${chosen.file.name} ${chosen.file.size} ${chosen.file.lastModified} ${chosen.format} ${chosen.delimiter}`} at=${at} description=${data} chosen=${chosen} change=${setChosen} />`
      }
    </div>
  <//>`
}

/** @param {{ at: import('./described.js').At, description: import('./described.js').Description, chosen: Chosen, change: (next: Chosen) => void }} props */
function Options({ at, description, chosen, change }) {
  const { file, format, delimiter } = chosen
  const { data, failure } = useLoad(() => previewOf(file, chosen), [])
  const [targets, setTargets] = useState(/** @type {Readonly<Record<string, string>>} */ ({}))
  const [emptyIsNull, setEmptyIsNull] = useState(true)
  const [onConflict, setOnConflict] = useState('')
  const [isWhole, setWhole] = useState(true)
  const [progress, setProgress] = useState(/** @type {Progress | undefined} */ (undefined))
  const [outcome, setOutcome] = useState(/** @type {Outcome | undefined} */ (undefined))
  const cancelled = useRef(false)
  const isRunning = progress !== undefined && outcome === undefined
  const names = description.columns.map(({ column_name: name }) => name)
  const targetOf = (/** @type {string} */ name) => targets[name] ?? (names.includes(name) ? name : '')
  const begin = async (from = 1) => {
    cancelled.current = false
    setOutcome(undefined)
    setProgress({
      pass: 'write',
      bytes: 0,
      read: 0,
      inserted: 0,
      skipped: 0,
      refused: 0,
      errors: [],
      batches: [],
    })
    const columns = Object.fromEntries((data?.names ?? []).map((name) => [name, targetOf(name) || null]))
    const reading = { format, delimiter, emptyIsNull }
    const asked = { at, file, reading, columns, onConflict, isWhole: isWhole && from === 1, from }
    const ended = await importFile(asked, setProgress, () => cancelled.current)
    setOutcome(ended)
    setProgress(ended)
    noteChange()
  }
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    return begin()
  }
  if (failure !== undefined) return html`<${Failure} of=${failure} />`
  if (data === undefined) return html`<${Loading} of="the first rows" />`
  const isMapped = data.names.some((name) => targetOf(name) !== '')
  const unique = description.constraints.filter(
    ({ constraint_type: kind }) => kind === 'PRIMARY KEY' || kind === 'UNIQUE',
  )
  return html`<form onSubmit=${submit}>
      <div class="column-fields">
        <${Field} label="Format" value=${format} onChange=${take((next) => change({ ...chosen, format: next === 'csv' ? 'csv' : 'json' }))}>
          <option value="csv">CSV</option><option value="json">JSON</option>
        <//>
        ${
          format === 'csv' &&
          html`<${Field} label="Between cells" value=${delimiter} onChange=${take((next) => change({ ...chosen, delimiter: next }))}>
          <option value=",">comma</option><option value=";">semicolon</option><option value=${'\t'}>tab</option>
        <//>`
        }
        <${Field} label="Rows that exist already" value=${onConflict} onChange=${take(setOnConflict)}>
          <option value="">are errors</option>
          ${unique.map(({ columns }) => html`<option value=${columns.join(',')}>are skipped, by ${columns.join(', ')}</option>`)}
        <//>
      </div>
      <fieldset><legend>Columns of the file</legend><div class="column-fields">
        ${data.names.map(
          (
            name,
          ) => html`<${Field} label=${name === '' ? 'without a name' : name} value=${targetOf(name)} onChange=${take((next) => setTargets({ ...targets, [name]: next }))}>
            <option value="">leave out</option>${names.map((one) => html`<option value=${one}>${one}</option>`)}
          <//>`,
        )}
      </div></fieldset>
      <${Table} label="First rows" rows=${data.rows} empty="The file has no row." keyOf=${(/** @type {unknown} */ _row, /** @type {number} */ index) => String(index)}
        columns=${data.names.map((name) => ({ name, title: html`<${Value} value=${name} most=${63} />`, cell: (/** @type {Readonly<Record<string, unknown>>} */ row) => html`<${Value} value=${row[name]} most=${80} />` }))} />
      <p class="row padded">
        ${format === 'csv' && html`<${Check} label="An empty cell is NULL" checked=${emptyIsNull} onChange=${() => setEmptyIsNull(!emptyIsNull)} />`}
        <${Check} label="All or nothing: check every row first" checked=${isWhole} onChange=${() => setWhole(!isWhole)} />
      </p>
      <div class="row">
        <button class="primary" disabled=${isRunning || !isMapped || data.rows.length === 0}>Import</button>
        ${
          isRunning &&
          html`<button type="button" onClick=${() => (cancelled.current = true)}>Stop</button>
          <progress aria-label=${progress.pass === 'check' ? 'Checking' : 'Writing'} max=${file.size} value=${progress.bytes}></progress>
          <span aria-live="polite">${progress.pass === 'check' ? 'Checked' : 'Written'}: ${counted(progress.read)} rows</span>`
        }
      </div>
    </form>
    ${outcome !== undefined && html`<${ImportResult} outcome=${outcome} goOn=${begin} />`}`
}
