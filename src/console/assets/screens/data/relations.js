import { call } from '../../api.js'
import { Failure, Loading } from '../../controls.js'
import { Dialog } from '../../dialogs.js'
import { useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { addressOf } from '../../router.js'
import { Value } from '../../values.js'
import { nameOf } from './edit.js'

/**
 * @typedef {import('./edit.js').Row} Row
 * @typedef {import('./edit.js').Reference} Reference
 */

/**
 * The foreign key of a cell whose row refers to another one.
 * @param {import('./edit.js').Structure} structure
 * @param {string} name
 * @param {Row} row
 */
export const referenceIn = ({ references }, name, row) =>
  references.find(
    ({ columns }) => columns.includes(name) && columns.every((one) => typeof row[one] === 'string'),
  )

/** @param {string} client @param {Reference} reference @param {Row} row */
export const addressOfReference = (client, { schema, table, columns, target }, row) =>
  rowsWhere(
    client,
    schema,
    table,
    target.map((name, index) => [name, row[columns[index] ?? '']]),
  )

/**
 * @param {string} client
 * @param {string} schema
 * @param {string} table
 * @param {readonly (readonly [column: string, value: string | null | undefined])[]} values
 */
const rowsWhere = (client, schema, table, values) =>
  addressOf('/data', {
    ...{ client, schema: schema === 'public' ? undefined : schema, table },
    where: JSON.stringify(values.map(([name, value]) => [name, 'eq', value])),
  })

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
    <${Failure} of=${failure} again=${reload} />
    ${data === undefined && failure === undefined && html`<${Loading} of="the tables that refer to it" />`}
    ${data !== undefined && others.length === 0 && html`<p class="soft">No table refers to this row.</p>`}
    <ul class="relations">${others.map(({ schema, table, columns, target }) => {
      const values = columns.map((name, index) => /** @type {const} */ ([name, row[target[index] ?? '']]))
      return html`<li><a href=${rowsWhere(client, schema, table, values)} onClick=${onClose}><${Value} value=${schema === 'public' ? table : `${schema}.${table}`} /></a> <span class="fine">by <${Value} value=${columns.join(', ')} /></span></li>`
    })}</ul>
    <div class="row"><button type="button" class="primary" onClick=${onClose}>Close</button></div>
  <//>`
}
