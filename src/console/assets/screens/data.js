import { call } from '../api.js'
import { later, Pending, Title, take } from '../controls.js'
import { useLoad, useStore } from '../hooks.js'
import { html } from '../html.js'
import { addressOf, go } from '../router.js'
import { clientsOf, holds, holdsTable } from '../session.js'
import { counted, Value } from '../values.js'
import { changes } from './data/described.js'

/**
 * @typedef {{ table_schema: string, table_name: string, table_type: string, estimated_rows: number }} ListedTable
 * @typedef {import('../session.js').Caller} Caller
 * @typedef {import('./data/described.js').At} At
 * @typedef {{ title: string, may: (caller: Caller, at: At) => boolean, View: import('preact').FunctionComponent<any> }} TableView
 */

/** The tables of a client, and the rows of one. @param {import('../router.js').ViewProps} props */
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
    <${Pending} of="the clients" data=${clients.data} failure=${clients.failure} again=${clients.reload} />
    ${client !== undefined && html`<${Client} key=${client} client=${client} schema=${schema} table=${table} caller=${caller} query=${query} />`}
    ${clients.data?.length === 0 && html`<p>There is no client whose rows you may read.</p>`}`
}

/** @param {{ client: string, schema: string, table: string | undefined, caller: Caller, query: import('../router.js').Query }} props */
function Client({ client, schema, table, caller, query }) {
  const { data, failure, reload } = useLoad(
    (signal) => call('/schema/tables', { client, signal }),
    [client, useStore(changes)],
  )
  /** @type {readonly ListedTable[] | undefined} */
  const tables = data?.tables
  return html`<div class="split">
    <nav class="tables" aria-label="Tables">
      <${Pending} of="the tables" data=${tables} failure=${failure} again=${reload} />
      ${tables !== undefined && tables.length > 0 && html`<${Tables} tables=${tables} client=${client} schema=${schema} table=${table} />`}
      ${
        holds(caller, client, 'management.tables.write') &&
        html`<p class="new-table"><a href=${addressOf('/data', { client, view: 'new-table' })} aria-current=${query.view === 'new-table' ? 'page' : undefined}>New table</a></p>`
      }
    </nav>
    ${
      table !== undefined
        ? html`<${Views} key=${JSON.stringify([client, schema, table])} at=${{ client, schema, table }} caller=${caller} query=${query} />`
        : query.view === 'new-table'
          ? html`<${NewTable} key=${client} at=${{ client, schema: 'public', table: '' }} caller=${caller} />`
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
    return html`<li><a href=${addressFor({ client, schema: one.table_schema, table: one.table_name })} aria-current=${isShown ? 'page' : undefined}>
      <${Value} value=${name} most=${80} /><span class="soft">${one.estimated_rows > 0 && `~${counted(Math.round(one.estimated_rows))}`}</span></a></li>`
  })}</ul>`

/** @param {At} at @param {string} [view] */
const addressFor = ({ client, schema, table }, view) =>
  addressOf('/data', { client, schema: schema === 'public' ? undefined : schema, table, view })

const NewTable = later('New table', () => import('./data/new-table.js'))
const Rows = later('The rows', () => import('./data/grid.js'), 'Grid')

/** @type {TableView['may']} */
const mayLook = (caller, { client }) => holds(caller, client, 'management.read')

/** What the console shows of a table beside its rows, by the parameter `view` of the address. @type {Readonly<Record<string, TableView>>} */
const VIEWS = {
  structure: {
    title: 'Structure',
    may: mayLook,
    View: later('The structure', () => import('./data/structure.js')),
  },
  policies: {
    title: 'Policies',
    may: mayLook,
    View: later('The policies', () => import('./data/policies.js')),
  },
  indexes: { title: 'Indexes', may: mayLook, View: later('The indexes', () => import('./data/indexes.js')) },
  import: {
    title: 'Import',
    may: (caller, at) => mayLook(caller, at) && holdsTable(caller, at, 'write'),
    View: later('The import', () => import('./data/import.js')),
  },
}

/** The views of a table, of which one is shown. @param {{ at: At, caller: Caller, query: import('../router.js').Query }} props */
function Views({ at, caller, query }) {
  const allowed = Object.entries(VIEWS).filter(([, { may }]) => may(caller, at))
  const [shown, view] = allowed.find(([name]) => name === query.view) ?? []
  const tab = (/** @type {string | undefined} */ name, /** @type {string} */ title) =>
    html`<a href=${addressFor(at, name)} aria-current=${name === shown ? 'page' : undefined}>${title}</a>`
  return html`<div class="views">
    ${allowed.length > 0 && html`<nav class="tabs" aria-label="Views of the table">${tab(undefined, 'Rows')}${allowed.map(([name, { title }]) => tab(name, title))}</nav>`}
    ${
      view === undefined
        ? html`<${Rows} caller=${caller} ...${at} query=${query} />`
        : html`<${view.View} key=${shown} at=${at} caller=${caller} />`
    }
  </div>`
}
