import { call } from '../../api.js'
import { Dialog, Pending } from '../../controls.js'
import { useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { Value } from '../../values.js'
import { nameOf } from './edit.js'
import { addressOfReference, rowsWhere } from './grid-table.js'

/**
 * @typedef {import('./edit.js').Row} Row
 * @typedef {import('./edit.js').Reference} Reference
 */

/**
 * Foreign keys of other tables that refer to this one.
 * @param {import('./edit.js').Place} place
 * @param {AbortSignal} [signal]
 * @returns {Promise<readonly (Reference & { definition: string })[]>} `schema` and `table` are those that refer, `target` the columns of this one.
 */
export async function referrers({ client, schema, table }, signal) {
  const { constraints } = await call('/schema/constraints', { client, ...(signal && { signal }) })
  /** @type {readonly any[]} */
  const all = constraints
  return all
    .filter(({ references: to }) => to?.table_schema === schema && to.table_name === table)
    .map(({ table_schema, table_name, constraint_name, columns, references, definition }) => ({
      ...{ constraint_name, schema: table_schema, table: table_name, columns, definition },
      target: references.columns,
    }))
}

/** The values of a row, the rows that it refers to, and those that refer to it. @param {{ place: import('./edit.js').Place, structure: import('./edit.js').Structure, row: Row, onClose: () => void }} props */
export function RowDialog({ place, structure, row, onClose }) {
  const { data, failure, reload } = useLoad((signal) => referrers(place, signal), [place])
  const { client } = place
  const own = structure.references.filter(({ columns }) =>
    columns.every((name) => typeof row[name] === 'string'),
  )
  const others = (data ?? []).filter(({ target }) => target.every((name) => typeof row[name] === 'string'))
  return html`<${Dialog} title=${nameOf(structure.key, row)} onClose=${onClose}>
    <dl class="facts whole-row">${Object.entries(row).map(
      ([name, value]) =>
        html`<div><dt><${Value} value=${name} most=${63} /></dt><dd><${Value} value=${value} /></dd></div>`,
    )}</dl>
    ${own.length > 0 && html`<h3>Refers to</h3>`}
    <ul class="relations">${own.map(
      (reference) =>
        html`<li><a href=${addressOfReference(client, reference, row)} onClick=${onClose}><${Value} value=${reference.table} /></a> <span class="fine">by <${Value} value=${reference.columns.join(', ')} /></span></li>`,
    )}</ul>
    <h3>Referred to by</h3>
    <${Pending} of="the tables that refer to it" data=${data} failure=${failure} again=${reload} />
    ${data !== undefined && others.length === 0 && html`<p class="soft">No table refers to this row.</p>`}
    <ul class="relations">${others.map(({ schema, table, columns, target }) => {
      const values = columns.map((name, index) => /** @type {const} */ ([name, row[target[index] ?? '']]))
      return html`<li><a href=${rowsWhere(client, schema, table, values)} onClick=${onClose}><${Value} value=${schema === 'public' ? table : `${schema}.${table}`} /></a> <span class="fine">by <${Value} value=${columns.join(', ')} /></span></li>`
    })}</ul>
    <div class="row"><button type="button" class="primary" onClick=${onClose}>Close</button></div>
  <//>`
}
