import { call } from '../api.js'
import { Link, later, Pager, Pending, Search, Table, Title, take } from '../controls.js'
import { useLoad } from '../hooks.js'
import { html } from '../html.js'
import { addressOf, go, goWith } from '../router.js'
import { Value } from '../values.js'
import { useClients } from './client-field.js'
import { Callers, limitOf, Operations, RouteState, Target } from './public-routes/record.js'

const LIMIT = 50

const NewRoute = later('The form', () => import('./public-routes/new.js'), 'NewRoute')
const RouteView = later('The route', () => import('./public-routes/route.js'), 'RouteView')

/** @typedef {import('./public-routes/record.js').Route} Route */

/** Keys have no capital letters, so that no route is hidden by the form. */
const NEW = 'NEW'

/** @param {import('../router.js').ViewProps} props */
export function View({ caller, rest, query }) {
  if (rest === NEW) return html`<${NewRoute} caller=${caller} />`
  if (rest !== '') return html`<${RouteView} key=${rest} routeKey=${rest} caller=${caller} />`
  return html`<${Routes} caller=${caller} query=${query} />`
}

/** @type {readonly import('../controls.js').Column<Route>[]} */
const COLUMNS = [
  {
    name: 'route_key',
    title: 'Route',
    cell: ({ route_key: key }) => html`<${Link} to=${`/public-routes/${key}`}><${Value} value=${key} /><//>`,
  },
  { name: 'client_name', title: 'Client', cell: (route) => html`<${Value} value=${route.client_name} />` },
  { name: 'table_name', title: 'Opens', cell: (route) => html`<${Target} of=${route} />` },
  { name: 'allowed_ops', title: 'Operations', cell: (route) => html`<${Operations} of=${route} />` },
  { name: 'requires_key', title: 'To', cell: (route) => html`<${Callers} of=${route} />` },
  { name: 'rate_limit', title: 'Rate', cell: (route) => limitOf(route) },
  { name: 'is_active', title: 'State', cell: (route) => html`<${RouteState} of=${route} />` },
]

/** @param {Route} route */
const keyOf = ({ route_key }) => route_key

/** @param {Pick<import('../router.js').ViewProps, 'caller' | 'query'>} props */
function Routes({ caller, query }) {
  const { search = '', client = '', state = '' } = query
  const offset = Math.max(0, Number(query.offset ?? 0) || 0)
  const isActive = state === 'active' ? true : state === 'closed' ? false : undefined
  const asked = { search, client_name: client, is_active: isActive, limit: LIMIT, offset }
  const { data, failure, isLoading, reload } = useLoad(
    (signal) => call('/admin/public-routes', { query: asked, signal }),
    [JSON.stringify(asked)],
  )
  const names = useClients(caller)
  const clients = names.includes(client) || client === '' ? names : [...names, client]
  const filter = (/** @type {string} */ name) => take((value) => goWith({ [name]: value, offset: undefined }))
  const routes = data?.data
  return html`<${Title} title="Public routes">
      <button type="button" class="primary" onClick=${() => go(addressOf(`/public-routes/${NEW}`))}>New route</button><//>
    <div class="tools" role="search">
      <${Search} search=${search} placeholder="Part of a route or table" />
      <label>Client <select value=${client} onChange=${filter('client')}>
        <option value="">All</option>${clients.map((name) => html`<option value=${name}>${name}</option>`)}
      </select></label>
      <label>State <select value=${state} onChange=${filter('state')}>
        <option value="">All</option><option value="active">active</option><option value="closed">closed</option>
      </select></label>
    </div>
    <${Pending} of="the public routes" data=${data} failure=${failure} again=${reload} />
    ${
      routes &&
      html`<${Table} label="Public routes" columns=${COLUMNS} rows=${routes.public_routes} keyOf=${keyOf} isBusy=${isLoading}
          empty="No public route matches." />
        <${Pager} shown=${routes.public_routes.length} offset=${offset} limit=${LIMIT} total=${routes.total} />`
    }`
}
