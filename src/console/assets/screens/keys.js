import { call } from '../api.js'
import { Link, later, Pager, Pending, Search, Table, Title, take } from '../controls.js'
import { useLoad } from '../hooks.js'
import { html } from '../html.js'
import { addressOf, go, goWith } from '../router.js'
import { Time, Value } from '../values.js'
import { useClients } from './client-field.js'
import { ClientName, KeyState, PublicPart, Rights } from './keys/record.js'

const LIMIT = 50

const KeyView = later('The key', () => import('./keys/key.js'), 'KeyView')
const NewKey = later('The form', () => import('./keys/new.js'), 'NewKey')

/** @typedef {import('./keys/record.js').Key} Key */

/** @param {import('../router.js').ViewProps} props */
export function View({ caller, rest, query }) {
  if (rest === 'new') return html`<${NewKey} caller=${caller} />`
  if (rest !== '') return html`<${KeyView} key=${rest} id=${rest} caller=${caller} />`
  return html`<${Keys} caller=${caller} query=${query} />`
}

/** @type {readonly import('../controls.js').Column<Key>[]} */
const COLUMNS = [
  {
    name: 'name',
    title: 'Name',
    sorts: true,
    cell: ({ id, name }) => html`<${Link} to=${`/keys/${id}`}><${Value} value=${name} most=${100} /><//>`,
  },
  { name: 'public_id', title: 'Key', cell: (key) => html`<${PublicPart} of=${key} />` },
  { name: 'client_name', title: 'Client', cell: (key) => html`<${ClientName} name=${key.client_name} />` },
  { name: 'rights', title: 'Rights', cell: ({ rights }) => html`<${Rights} rights=${rights} />` },
  {
    name: 'last_used_at',
    title: 'Last used',
    sorts: true,
    cell: (key) => html`<${Time} at=${key.last_used_at} />`,
  },
  {
    name: 'expires_at',
    title: 'Expires',
    sorts: true,
    cell: (key) => html`<${Time} at=${key.expires_at} />`,
  },
  { name: 'state', title: 'State', cell: (key) => html`<${KeyState} of=${key} />` },
]

/** @param {Key} key */
const idOf = ({ id }) => id

/** The keys, by the filters and the order of the address. @param {Pick<import('../router.js').ViewProps, 'caller' | 'query'>} props */
function Keys({ caller, query }) {
  const { search = '', client = '', state = '', sort = 'created_at', dir = 'desc' } = query
  const offset = Math.max(0, Number(query.offset ?? 0) || 0)
  const asked = { search, client_name: client, state, sort, direction: dir, limit: LIMIT + 1, offset }
  const { data, failure, isLoading, reload } = useLoad(
    (signal) => call('/admin/api-keys', { query: asked, signal }),
    [JSON.stringify(asked)],
  )
  const names = useClients(caller)
  const clients = names.includes(client) || client === '' ? names : [...names, client]
  const filter = (/** @type {string} */ name) => take((value) => goWith({ [name]: value, offset: undefined }))
  /** @type {readonly Key[] | undefined} */
  const keys = data?.data.api_keys
  const shown = keys?.slice(0, LIMIT) ?? []
  return html`<${Title} title="Keys"><button type="button" class="primary" onClick=${() => go(addressOf('/keys/new'))}>New key</button><//>
    <div class="tools" role="search">
      <${Search} search=${search} placeholder="Part of a name, or svc_…" clean=${withoutSecret} />
      <label>Client <select value=${client} onChange=${filter('client')}>
        <option value="">All</option>${clients.map((name) => html`<option value=${name}>${name}</option>`)}
      </select></label>
      <label>State <select value=${state} onChange=${filter('state')}>
        <option value="">All</option>${['active', 'inactive', 'expired'].map((name) => html`<option value=${name}>${name}</option>`)}
      </select></label>
    </div>
    <${Pending} of="the keys" data=${data} failure=${failure} again=${reload} />
    ${
      keys &&
      html`<${Table} label="Keys" columns=${COLUMNS} rows=${shown} keyOf=${idOf} sort=${sort} dir=${dir} isBusy=${isLoading}
          empty="No key matches." />
        <${Pager} shown=${shown.length} offset=${offset} limit=${LIMIT} hasMore=${keys.length > LIMIT} />`
    }`
}

/** A key that was pasted whole is found by its public part. Its secret does not reach the address. @param {string} text */
const withoutSecret = (text) => text.replace(/(svc_[0-9a-f]{16})\..*/s, '$1')
