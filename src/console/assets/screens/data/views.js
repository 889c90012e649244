import { Failure, Loading } from '../../controls.js'
import { useLoad, useStore } from '../../hooks.js'
import { html } from '../../html.js'
import { holds, holdsTable } from '../../rights.js'
import { addressOf, place } from '../../router.js'

/**
 * @typedef {import('../../session.js').Caller} Caller
 * @typedef {{ at: import('./described.js').At, caller: Caller }} TableViewProps
 * @typedef {{ title: string, may: (caller: Caller, at: import('./described.js').At) => boolean, load: () => Promise<{ View: import('preact').FunctionComponent<TableViewProps> }> }} TableView
 */

/** @type {TableView['may']} */
const mayLook = (caller, { client }) => holds(caller, client, 'management.read')

/** What the console shows of a table beside its rows, by the parameter `view` of the address. @type {Readonly<Record<string, TableView>>} */
const VIEWS = {
  structure: { title: 'Structure', may: mayLook, load: () => import('./structure.js') },
  policies: { title: 'Policies', may: mayLook, load: () => import('./policies.js') },
  indexes: { title: 'Indexes', may: mayLook, load: () => import('./indexes.js') },
  import: {
    title: 'Import',
    may: (caller, at) => mayLook(caller, at) && holdsTable(caller, at, 'write'),
    load: () => import('./import.js'),
  },
}

/**
 * The views of a table, of which one is shown. `children` is the one of its rows.
 * @param {TableViewProps & { children?: unknown }} props
 */
export function Views({ at, caller, children }) {
  const { query } = useStore(place)
  const { client, schema, table } = at
  const shown = Object.entries(VIEWS).filter(([, { may }]) => may(caller, at))
  const [name, view] = shown.find(([name]) => name === query.view) ?? []
  const addressFor = (/** @type {string | undefined} */ view) =>
    addressOf('/data', { client, schema: schema === 'public' ? undefined : schema, table, view })
  const tab = (/** @type {string | undefined} */ one, /** @type {string} */ title) =>
    html`<a href=${addressFor(one)} aria-current=${one === name ? 'page' : undefined}>${title}</a>`
  return html`<div class="views">
    ${shown.length > 0 && html`<nav class="tabs" aria-label="Views of the table">${tab(undefined, 'Rows')}${shown.map(([one, { title }]) => tab(one, title))}</nav>`}
    ${view === undefined ? children : html`<${Lazy} key=${name} view=${view} at=${at} caller=${caller} />`}
  </div>`
}

/** The form for a new table. @param {{ client: string, caller: Caller }} props */
export const NewTable = (props) =>
  html`<${Lazy} view=${NEW_TABLE} at=${{ client: props.client, schema: 'public', table: '' }} caller=${props.caller} />`

/** @type {TableView} */
const NEW_TABLE = {
  title: 'New table',
  may: (caller, { client }) => holds(caller, client, 'management.tables.write'),
  load: () => import('./new-table.js'),
}

/** @param {{ client: string, caller: Caller, isShown: boolean }} props */
export const NewTableLink = ({ client, caller, isShown }) =>
  NEW_TABLE.may(caller, { client, schema: '', table: '' }) &&
  html`<p class="new-table"><a href=${addressOf('/data', { client, view: 'new-table' })} aria-current=${isShown ? 'page' : undefined}>New table</a></p>`

/** @param {TableViewProps & { view: TableView }} props */
function Lazy({ view, ...props }) {
  const { data, failure } = useLoad(view.load, [view])
  if (data !== undefined) return html`<${data.View} ...${props} />`
  if (failure === undefined) return html`<${Loading} of=${view.title} />`
  const says = `${view.title} could not be loaded. The service may have been updated: load the page again.`
  return html`<${Failure} of=${says} again=${() => location.reload()} />`
}
