import { call } from '../../api.js'
import { Failure, Loading, Pager, Table } from '../../controls.js'
import { useExactCount, useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { goWith, offsetIn } from '../../router.js'
import { counted, isNumeric, Value } from '../../values.js'
import { conditionsFrom, Filters, filtersIn } from './filters.js'

const LIMIT = 50
/** Columns beside each other. A wider table is paged. */
const WIDTH = 50
/** Characters of a cell. */
const CELL = 160

/** @typedef {{ column_name: string, data_type: string }} Column */
/** @typedef {Readonly<Record<string, unknown>>} Row */

/** The rows of a table, read through the gateway. @param {{ client: string, schema: string, table: string, query: import('../../router.js').Query }} props */
export function Grid({ client, schema, table, query }) {
  const { sort, dir } = query
  const [isExact, countExactly] = useExactCount(query.where ?? '')
  const offset = offsetIn(query.offset)
  const filters = filtersIn(query.where)
  const named = { table_name: table, table_schema: schema }
  const structure = useLoad(
    // Who may read rows may lack the right to read the structure. Then the rows tell the columns.
    (signal) =>
      call('/schema/columns', { client, query: named, signal }).catch(() => ({ columns: undefined })),
    [client, schema, table],
  )
  const body = {
    ...{ table_name: table, schema_name: schema, limit: LIMIT + 1, offset },
    ...(filters.length > 0 && { conditions: conditionsFrom(filters) }),
    ...(sort !== undefined && { sort_by: { field: sort, direction: dir === 'desc' ? 'desc' : 'asc' } }),
    count: isExact ? 'exact' : 'estimated',
  }
  const { data, failure, isLoading, reload } = useLoad(
    (signal) => call('/gateway/fetch', { method: 'POST', isRead: true, client, body, signal }),
    [client, JSON.stringify(body)],
  )
  /** @type {readonly Row[]} */
  const rows = data?.data ?? []
  const shown = rows.slice(0, LIMIT)
  /** @type {readonly Column[]} */
  const columns =
    structure.data?.columns ??
    Object.keys(rows[0] ?? {}).map((name) => ({ column_name: name, data_type: '' }))
  return html`<div class="grid">
    <${Filters} filters=${filters} columns=${columns} />
    <${Failure} of=${failure} again=${reload} />
    ${data === undefined && failure === undefined && html`<${Loading} of="the rows" />`}
    ${
      data !== undefined &&
      html`<${Wide} columns=${columns} rows=${shown} offset=${offset} query=${query} isBusy=${isLoading} />
      <div class="row"><${Pager} shown=${shown.length} offset=${offset} limit=${LIMIT} total=${data.count} isEstimated=${!isExact} hasMore=${rows.length > LIMIT} />
        ${!isExact && html`<button type="button" class="plain" onClick=${countExactly}>Count exactly</button>`}
        <button type="button" class="plain" onClick=${reload}>Read again</button></div>`
    }
  </div>`
}

/** @param {{ columns: readonly Column[], rows: readonly Row[], offset: number, query: import('../../router.js').Query, isBusy: boolean }} props */
function Wide({ columns, rows, offset, query, isBusy }) {
  const from = Math.max(0, Number(query.columns ?? 0) || 0)
  const visible = columns.slice(from, from + WIDTH)
  const move = (/** @type {number} */ by) => () => goWith({ columns: from + by <= 0 ? undefined : from + by })
  return html`${
    columns.length > WIDTH &&
    html`<p class="row"><span>Columns ${counted(from + 1)}–${counted(from + visible.length)} of ${counted(columns.length)}</span>
      <button type="button" disabled=${from === 0} onClick=${move(-WIDTH)}>Left</button>
      <button type="button" disabled=${from + WIDTH >= columns.length} onClick=${move(WIDTH)}>Right</button></p>`
  }
  <${Table} label="Rows" rows=${rows} isBusy=${isBusy} sort=${query.sort} dir=${query.dir} empty="No row matches."
    keyOf=${(/** @type {Row} */ _row, /** @type {number} */ index) => String(offset + index)}
    columns=${visible.map(({ column_name: name, data_type: type }) => ({
      name,
      sorts: true,
      title: html`<${Value} value=${name} most=${63} /> <span class="type">${type}</span>`,
      isNumber: isNumeric(rows[0]?.[name]),
      cell: (/** @type {Row} */ row) => html`<${Value} value=${row[name]} most=${CELL} />`,
    }))} />`
}
