import { useRef, useState } from 'preact/hooks'
import { Check, Field, Panel, Pending, Table, take } from '../../controls.js'
import { useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { counted, Value } from '../../values.js'
import { describe, noteChange } from './described.js'
import { guess, previewOf } from './import-file.js'
import { ImportResult } from './import-result.js'
import { importFile, NOTHING } from './import-run.js'

/**
 * @typedef {import('./import-run.js').Progress} Progress
 * @typedef {import('./import-run.js').Outcome} Outcome
 * @typedef {{ file: File, format: import('./import-file.js').Format, delimiter: string }} Chosen
 */

/** Rows of a file into this table. @param {import('./described.js').TableViewProps} props */
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
      <${Pending} of="the columns" data=${data} failure=${failure} again=${reload} />
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
  const [targets, setTargets] = useState(/** @type {ReadonlyMap<string, string>} */ (new Map()))
  const [emptyIsNull, setEmptyIsNull] = useState(true)
  const [onConflict, setOnConflict] = useState('')
  const [isWhole, setWhole] = useState(true)
  const [progress, setProgress] = useState(/** @type {Progress | undefined} */ (undefined))
  const [outcome, setOutcome] = useState(/** @type {Outcome | undefined} */ (undefined))
  const cancelled = useRef(false)
  const isRunning = progress !== undefined && outcome === undefined
  const names = description.columns.map(({ column_name: name }) => name)
  const targetOf = (/** @type {string} */ name) => targets.get(name) ?? (names.includes(name) ? name : '')
  const begin = async (from = 1) => {
    cancelled.current = false
    setOutcome(undefined)
    setProgress(NOTHING)
    // The others keep their names: a thousand of them are too long for an address.
    const columns = Object.fromEntries(
      (data?.names ?? [])
        .map((name) => /** @type {const} */ ([name, targetOf(name) || null]))
        .filter(([name, target]) => name !== target),
    )
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
  if (failure !== undefined || data === undefined)
    return html`<${Pending} of="the first rows" failure=${failure} />`
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
          ) => html`<${Target} of=${name} value=${targetOf(name)} names=${names} isOfMany=${names.length * data.names.length > MANY}
            onChange=${take((next) => setTargets(new Map(targets).set(name, next)))} />`,
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
    ${outcome !== undefined && html`<${ImportResult} at=${at} outcome=${outcome} goOn=${begin} />`}`
}

/** Choices of all fields together that a browser shows at once without waiting. */
const MANY = 20_000

/** The column that takes those of the file. Of many fields only the one in use has every choice. @param {{ of: string, value: string, names: readonly string[], isOfMany: boolean, onChange: ReturnType<typeof take> }} props */
function Target({ of: name, value, names, isOfMany, onChange }) {
  const [isUsed, setUsed] = useState(false)
  const use = () => setUsed(true)
  const offered = isUsed || !isOfMany ? names : names.filter((one) => one === value)
  const label = name === '' ? 'without a name' : html`<${Value} value=${name} most=${63} />`
  return html`<${Field} label=${label} value=${value} onChange=${onChange} onFocus=${use} onPointerEnter=${use}>
    <option value="">leave out</option>${offered.map((one) => html`<option value=${one}>${one}</option>`)}
  <//>`
}
