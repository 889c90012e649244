import { call } from '../api.js'
import { Failure, Loading, Title } from '../controls.js'
import { useLoad, useStore } from '../hooks.js'
import { html } from '../html.js'
import { addressOf, go } from '../router.js'
import { take } from '../sign-in.js'
import { counted, Value } from '../values.js'
import { clientsOf } from './clients.js'
import { changes } from './data/described.js'
import { Grid } from './data/grid.js'
import { NewTable, NewTableLink, Views } from './data/views.js'

/** @typedef {{ table_schema: string, table_name: string, table_type: string, estimated_rows: number }} ListedTable */

/** The tables of a client, and the rows of one. @param {import('../screens.js').ViewProps} props */
export function View({ caller, query }) {
  const clients = useLoad((signal) => clientsOf(caller, signal), [caller])
  const client = query.client ?? clients.data?.[0]
  const { schema = 'public', table } = query
  return html`<${Title} title=${table ?? 'Data'}>
      ${
        clients.data !== undefined &&
        html`<label>Client <select value=${client} onChange=${take((value) => go(addressOf('/data', { client: value })))}>${clients.data.map(
          (name) => html`<option value=${name}>${name}</option>`,
        )}</select></label>`
      }
    <//>
    <${Failure} of=${clients.failure} again=${clients.reload} />
    ${clients.isLoading && clients.data === undefined && html`<${Loading} of="the clients" />`}
    ${
      client !== undefined &&
      clients.data !== undefined &&
      html`<${Client} key=${client} client=${client} schema=${schema} table=${table} caller=${caller} query=${query} />`
    }
    ${clients.data?.length === 0 && html`<p>There is no client whose rows you may read.</p>`}`
}

/** @param {{ client: string, schema: string, table: string | undefined, caller: import('../session.js').Caller, query: import('../router.js').Query }} props */
function Client({ client, schema, table, caller, query }) {
  const { data, failure, reload } = useLoad(
    (signal) => call('/schema/tables', { client, signal }),
    [client, useStore(changes)],
  )
  /** @type {readonly ListedTable[] | undefined} */
  const tables = data?.tables
  return html`<div class="split">
    <nav class="tables" aria-label="Tables">
      <${Failure} of=${failure} again=${reload} />
      ${tables === undefined && failure === undefined && html`<${Loading} of="the tables" />`}
      ${tables !== undefined && tables.length > 0 && html`<${Tables} tables=${tables} client=${client} schema=${schema} table=${table} />`}
      <${NewTableLink} client=${client} caller=${caller} isShown=${query.view === 'new-table'} />
    </nav>
    ${
      table !== undefined
        ? html`<${Views} key=${JSON.stringify([client, schema, table])} at=${{ client, schema, table }} caller=${caller}>
            <${Grid} caller=${caller} client=${client} schema=${schema} table=${table} query=${query} />
          <//>`
        : query.view === 'new-table'
          ? html`<${NewTable} key=${client} client=${client} caller=${caller} />`
          : tables !== undefined &&
            html`<p class="empty">${tables.length > 0 ? 'Choose a table.' : 'No table yet.'}</p>`
    }
  </div>`
}

/** @param {{ tables: readonly ListedTable[], client: string, schema: string, table: string | undefined }} props */
const Tables = ({ tables, client, schema, table }) =>
  html`<ul>${tables.map((one) => {
    const isShown = one.table_name === table && one.table_schema === schema
    const name = one.table_schema === 'public' ? one.table_name : `${one.table_schema}.${one.table_name}`
    const place = {
      client,
      schema: one.table_schema === 'public' ? undefined : one.table_schema,
      table: one.table_name,
    }
    return html`<li><a href=${addressOf('/data', place)} aria-current=${isShown ? 'page' : undefined}>
      <${Value} value=${name} most=${80} /><span class="soft">${one.estimated_rows > 0 && `~${counted(Math.round(one.estimated_rows))}`}</span></a></li>`
  })}</ul>`
