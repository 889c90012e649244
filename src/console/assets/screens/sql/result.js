import { useState } from 'preact/hooks'
import { Check, Table } from '../../controls.js'
import { html } from '../../html.js'
import { counted, countOf, duration, isNumeric, Value } from '../../values.js'
import { csvHead, csvOf, saveFile } from '../files.js'

/** Rows and columns beside each other. A larger result is paged. */
const [ROWS, COLUMNS] = [100, 50]
/** Characters of a cell. */
const CELL = 300

/** @param {import('./run.js').Meta} meta */
export function summaryOf({ returned_row_count, rows_affected, statement_count, duration_ms, columns }) {
  return [
    ...(columns.length > 0 ? [countOf(returned_row_count, 'row')] : []),
    ...(rows_affected > 0 || columns.length === 0 ? [`${counted(rows_affected)} changed`] : []),
    ...(statement_count > 1 ? [countOf(statement_count, 'statement')] : []),
    duration(duration_ms),
  ].join(' · ')
}

/** The rows of the last statement. @param {{ ran: import('./run.js').Ran }} props */
export function Result({ ran: { rows, meta } }) {
  const names = meta.columns.map(({ name }) => name)
  const repeated = names.find((name, index) => names.indexOf(name) < index)
  return html`<section class="panel" aria-label="Result">
    <header><h2>Result</h2><span class="soft" role="status">${summaryOf(meta)}</span>
      ${names.length > 0 && html`<${Downloads} columns=${meta.columns} rows=${rows} />`}</header>
    ${meta.statement_count > 1 && names.length > 0 && html`<p class="fine">The rows are those of the last statement. All statements were run as one transaction.</p>`}
    ${
      repeated !== undefined &&
      html`<p class="caution">Two columns are called <${Value} value=${repeated} />, and only the last one is shown. Give one of them another name with AS.</p>`
    }
    ${names.length === 0 ? html`<p class="empty">Done. The statement has no rows.</p>` : html`<${Rows} rows=${rows} columns=${meta.columns} />`}
  </section>`
}

/** @param {{ columns: import('./run.js').Meta['columns'], rows: readonly import('./run.js').Row[] }} props */
function Downloads({ columns, rows }) {
  const [neutral, setNeutral] = useState(true)
  const csv = () => {
    const names = [...new Set(columns.map(({ name }) => name))]
    const json = new Set(columns.filter(({ type }) => /^jsonb?$/.test(type ?? '')).map(({ name }) => name))
    const how = { neutral, json }
    const parts = [csvHead(names, how), csvOf(names, rows, how)]
    saveFile('result.csv', new Blob(parts, { type: 'text/csv;charset=utf-8' }))
  }
  const json = () =>
    saveFile('result.json', new Blob([JSON.stringify(rows, undefined, 1)], { type: 'application/json' }))
  return html`<span class="actions row">
    <${Check} label="Formulas as text" checked=${neutral} onChange=${() => setNeutral(!neutral)}
      title="In CSV: a text that begins with = + - or @ gets an apostrophe, so that no spreadsheet runs it" />
    <button type="button" onClick=${csv}>CSV</button>
    <button type="button" onClick=${json}>JSON</button>
  </span>`
}

/** @param {{ rows: readonly import('./run.js').Row[], columns: import('./run.js').Meta['columns'] }} props */
function Rows({ rows, columns }) {
  const [from, setFrom] = useState(0)
  const [left, setLeft] = useState(0)
  const shown = rows.slice(from, from + ROWS)
  const beside = [...new Map(columns.map((column) => [column.name, column])).values()].slice(
    left,
    left + COLUMNS,
  )
  return html`<${Parts} of="Columns" from=${left} size=${COLUMNS} total=${columns.length} onMove=${setLeft} />
    <div class="grid"><${Table} label="Rows of the result" rows=${shown} empty="No row."
      keyOf=${(/** @type {unknown} */ _row, /** @type {number} */ index) => String(from + index)}
      columns=${beside.map(({ name, type }) => ({
        name,
        title: html`<${Value} value=${name} most=${63} /> <span class="type">${type}</span>`,
        isNumber: isNumeric(rows[0]?.[name]),
        cell: (/** @type {import('./run.js').Row} */ row) =>
          html`<${Value} value=${row[name]} most=${CELL} />`,
      }))} /></div>
    <${Parts} of="Rows" from=${from} size=${ROWS} total=${rows.length} onMove=${setFrom} />`
}

/** @param {{ of: string, from: number, size: number, total: number, onMove: (from: number) => void }} props */
function Parts({ of, from, size, total, onMove }) {
  if (total <= size) return null
  return html`<nav class="pager" aria-label=${of}>
    <span aria-live="polite">${of} ${counted(from + 1)}–${counted(Math.min(from + size, total))} of ${counted(total)}</span>
    <button type="button" disabled=${from === 0} onClick=${() => onMove(from - size)}>Previous</button>
    <button type="button" disabled=${from + size >= total} onClick=${() => onMove(from + size)}>Next</button>
  </nav>`
}
