import { ApiError } from '../../api.js'
import { Failure, Link, Table } from '../../controls.js'
import { html } from '../../html.js'
import { counted, countOf, Value } from '../../values.js'

/**
 * @typedef {import('./import-run.js').Outcome} Outcome
 * @typedef {import('./import-run.js').BadRow} BadRow
 */

/** @type {readonly import('../../controls.js').Column<BadRow>[]} */
const COLUMNS = [
  { name: 'row', title: 'Row', isNumber: true, cell: ({ row }) => counted(row) },
  {
    name: 'column',
    title: 'Column',
    cell: ({ column }) =>
      column === undefined ? html`<span class="soft">–</span>` : html`<${Value} value=${column} />`,
  },
  { name: 'error', title: 'Error', cell: ({ error }) => html`<${Value} value=${error} />` },
  { name: 'code', title: 'Code', cell: ({ code }) => html`<code>${code}</code>` },
]

/** What an import has done. @param {{ at: import('./described.js').At, outcome: Outcome, goOn: (from: number) => void }} props */
export function ImportResult({ at, outcome, goOn }) {
  const { end, failure, failedAt, batches, skipped, refused, errors, pass } = outcome
  const next = end === 'done' || end === 'bad' || pass === 'check' ? undefined : outcome.next
  return html`<div class="import-result" role="status">
    <p><strong>${saidOf(outcome)}</strong>${outcome.inserted > 0 && html` <${Link} to="/data" query=${{ client: at.client, schema: at.schema === 'public' ? undefined : at.schema, table: at.table }}>Show the rows<//>`}</p>
    ${skipped > 0 && html`<p>${countOf(skipped, 'row')} existed already.</p>`}
    ${refused > 0 && end !== 'bad' && html`<p>${countOf(refused, 'row')} ${pass === 'check' ? 'cannot be stored' : 'were refused, and all others of their batches are stored'}.</p>`}
    <${Failure} of=${failure} />
    ${failedAt !== undefined && pass === 'write' && html`<p>${inDoubt(failure, failedAt)}</p>`}
    ${next !== undefined && html`<p><button type="button" onClick=${() => goOn(next)}>Go on from row ${counted(next)}</button></p>`}
    ${
      batches.length > 0 &&
      html`<details><summary>${countOf(batches.length, 'batch', 'batches')} written</summary>
      <ul>${batches.map(({ first, last, written }) => html`<li>rows ${counted(first)}–${counted(last)}: ${counted(written)} stored</li>`)}</ul></details>`
    }
    ${
      errors.length > 0 &&
      html`<p>${errors.length < refused && `The first ${counted(errors.length)} of ${counted(refused)} errors:`}</p>
      <${Table} label="Refused rows" columns=${COLUMNS} rows=${errors} keyOf=${(/** @type {BadRow} */ { row }, /** @type {number} */ index) => `${row} ${index}`} />`
    }
  </div>`
}

/** @param {Outcome} outcome */
function saidOf({ end, pass, inserted, refused, batches }) {
  const stored = `${countOf(inserted, 'row')} stored`
  switch (end) {
    case 'done':
      return `${stored}.`
    case 'bad':
      return `Nothing was written: ${countOf(refused, 'row')} cannot be stored.`
    default:
      if (pass === 'check')
        return `Nothing was written: the check ${end === 'cancelled' ? 'was stopped' : 'has failed'}.`
      return `${end === 'cancelled' ? 'Stopped' : 'Failed'} after ${countOf(batches.length, 'batch', 'batches')}: ${stored}.`
  }
}

/** Of the batch that has failed. @param {unknown} failure @param {{ first: number, last: number }} batch */
function inDoubt(failure, { first, last }) {
  const rows = `rows ${counted(first)}–${counted(last)}`
  if (!(failure instanceof ApiError) || failure.status === 0)
    return `Whether the ${rows} are stored is not known. Skip rows that exist already, or look, before you go on.`
  const stored = failure.details?.rows_inserted ?? 0
  return stored > 0 ? `Of the ${rows}, ${counted(stored)} are stored.` : `Of the ${rows} none is stored.`
}
