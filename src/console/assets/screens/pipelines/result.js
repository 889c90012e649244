import { Fact, Link, Mark, Panel, Table } from '../../controls.js'
import { html } from '../../html.js'
import { counted, countOf, isNumeric, Value } from '../../values.js'

/**
 * @typedef {Readonly<Record<string, unknown>>} Row
 * @typedef {{ index: number, error: string, code: string }} Refused
 * @typedef {{ data: readonly Row[], data_truncated?: boolean, rows_fetched: number, rows_inserted: number, would_insert: number, source_client: string, sink_client: string, errors: readonly Refused[], errors_truncated?: boolean, stopped?: string, pipeline_run_id: string }} Result
 */

/** Rows of a table on the screen. */
export const SHOWN = 50

/** @param {{ label: string, rows: readonly Row[] }} props */
export function Rows({ label, rows }) {
  const shown = rows.slice(0, SHOWN)
  const names = [...new Set(shown.flatMap((row) => Object.keys(row)))].slice(0, SHOWN)
  const columns = names.map((name) => ({
    name,
    title: html`<${Value} value=${name} most=${63} />`,
    isNumber: isNumeric(shown[0]?.[name]),
    cell: (/** @type {Row} */ row) => html`<${Value} value=${row[name]} most=${120} />`,
  }))
  return html`<${Table} label=${label} columns=${columns} rows=${shown} empty="No row."
    keyOf=${(/** @type {Row} */ _row, /** @type {number} */ index) => String(index)} />`
}

/** Rows that are read beside those that would be written. @param {{ input: readonly Row[], result: Result, sink: string }} props */
export const DryRun = ({ input, result, sink }) => html`<div class="dry-run">
  <${Panel} title="Input" note=${`${counted(result.rows_fetched)} read, the first ${counted(Math.min(input.length, SHOWN))} here`}><${Rows} label="Rows that are read" rows=${input} /><//>
  <${Panel} title="Output" note=${html`${counted(result.would_insert)} would go to <${Value} value=${sink} />`}><${Rows} label="Rows for the sink" rows=${result.data} /><//>
</div>`

/** @type {readonly import('../../controls.js').Column<Refused>[]} */
const REFUSED = [
  { name: 'index', title: 'Row', isNumber: true, cell: ({ index }) => counted(index) },
  { name: 'code', title: 'Code', cell: ({ code }) => html`<code>${code}</code>` },
  { name: 'error', title: 'Why', cell: ({ error }) => html`<${Value} value=${error} most=${500} />` },
]

/** The outcome of a run. @param {{ result: Result }} props */
export function Ran({ result }) {
  const { errors, pipeline_run_id: id, stopped } = result
  const refused = `${counted(errors.length)}${result.errors_truncated ? ' and more' : ''}`
  return html`<${Panel} title="Result" note=${html`<span role="status">${countOf(result.rows_inserted, 'row is', 'rows are')} stored</span>`}
      actions=${html`<${Link} to=${`/pipelines/runs/${id}`}>Log of the run<//>`}>
      <dl class="facts">
        <${Fact} name="Read">${counted(result.rows_fetched)} from <${Value} value=${result.source_client} /><//>
        <${Fact} name="Stored">${counted(result.rows_inserted)} in <${Value} value=${result.sink_client} /><//>
        <${Fact} name="Refused">${refused}${stopped !== undefined && html` <${Mark} tone="bad">stopped: ${stopped}<//>`}<//>
        <${Fact} name="Run"><code>${id}</code><//>
      </dl>
      ${errors.length > 0 && html`<${Table} label="Refused rows" columns=${REFUSED} rows=${errors.slice(0, 200)} keyOf=${(/** @type {Refused} */ { index }) => String(index)} />`}
    <//>
    <${Panel} title="Rows" note=${result.data_truncated ? 'the first of them' : undefined}><${Rows} label="Rows of the run" rows=${result.data} /><//>`
}
