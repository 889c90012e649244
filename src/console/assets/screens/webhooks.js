import { facts } from '../api.js'
import { Link, later, Pager, Pending, Table, Title, take } from '../controls.js'
import { useLoad } from '../hooks.js'
import { html } from '../html.js'
import { addressOf, go, goWith } from '../router.js'
import { Time, textOf, Value } from '../values.js'
import { useClients } from './client-field.js'
import { callWebhooks } from './webhooks/calls.js'
import { Events, Owner, State, StatusMark } from './webhooks/marks.js'

const LIMIT = 50

const DeliveryView = later('The delivery', () => import('./webhooks/delivery.js'), 'DeliveryView')
const EditView = later('The form', () => import('./webhooks/form.js'), 'EditView')
const NewView = later('The form', () => import('./webhooks/form.js'), 'NewView')
const ReceivedView = later('What was received', () => import('./webhooks/received.js'), 'ReceivedView')
const WebhookView = later('The webhook', () => import('./webhooks/webhook.js'), 'WebhookView')

/** @param {import('../router.js').ViewProps} props */
export function View({ caller, rest, query }) {
  const [id = '', part, delivery = ''] = rest.split('/')
  if (id === '') return html`<${Webhooks} caller=${caller} query=${query} />`
  if (id === 'received') return html`<${ReceivedView} id=${part} />`
  if (id === 'new') return html`<${NewView} caller=${caller} />`
  if (part === 'edit') return html`<${EditView} key=${id} id=${id} caller=${caller} />`
  if (part === 'deliveries')
    return html`<${DeliveryView} key=${rest} id=${id} delivery=${delivery} caller=${caller} />`
  return html`<${WebhookView} key=${id} id=${id} caller=${caller} query=${query} />`
}

/** @typedef {import('./webhooks/calls.js').ListedWebhook} ListedWebhook */

/** @type {readonly import('../controls.js').Column<ListedWebhook>[]} */
const COLUMNS = [
  {
    name: 'url',
    title: 'Address',
    cell: ({ id, url, description }) =>
      html`<${Link} to=${`/webhooks/${id}`}><${Value} value=${url} most=${80} /><//>${
        description !== null &&
        html`<br /><span class="soft"><${Value} value=${description} most=${80} /></span>`
      }`,
  },
  { name: 'events', title: 'Events', cell: (webhook) => html`<${Events} of=${webhook} />` },
  { name: 'client', title: 'Of', cell: (webhook) => html`<${Owner} of=${webhook} />` },
  {
    name: 'only',
    title: 'Only',
    cell: ({ table_name: table, filter }) => html`<${Only} table=${table} filter=${filter} />`,
  },
  { name: 'state', title: 'State', cell: (webhook) => html`<${State} of=${webhook} />` },
  {
    name: 'last',
    title: 'Last delivery',
    cell: ({ last_delivery: last }) =>
      last === null
        ? html`<span class="null">none</span>`
        : html`<span class="detail"><${Time} at=${last.created_at} /></span> <${StatusMark} of=${last.status} />`,
  },
]

/** The table and the conditions that narrow its events. @param {{ table: string | null, filter: unknown }} props */
const Only = ({ table, filter }) =>
  html`${table !== null && html`<${Value} value=${table} />`}${
    table !== null && filter !== null && html`<br />`
  }${filter !== null && html`<code><${Value} value=${textOf(filter)} most=${60} /></code>`}`

const STATES = { active: 'Active', failing: 'Failing', inactive: 'Inactive' }

/** @param {Pick<import('../router.js').ViewProps, 'caller' | 'query'>} props */
function Webhooks({ caller, query }) {
  const { state = '', client = '' } = query
  const offset = Math.max(0, Number(query.offset ?? 0) || 0)
  const clients = useClients(caller)
  const asked = {
    ...(Object.hasOwn(STATES, state) && { state }),
    ...{ client_name: client, limit: LIMIT, offset },
  }
  const { data, failure, isLoading, reload } = useLoad(
    (signal) => callWebhooks(caller, '', { query: asked, signal }),
    [JSON.stringify(asked)],
  )
  const set = (/** @type {string} */ name) => take((value) => goWith({ [name]: value, offset: undefined }))
  const names = client === '' || clients.includes(client) ? clients : [client, ...clients]
  return html`<${Title} title="Webhooks">
      <div class="row">
        ${facts.receiver && html`<button type="button" onClick=${() => go(addressOf('/webhooks/received'))}>Received</button>`}
        <button type="button" class="primary" onClick=${() => go(addressOf('/webhooks/new'))}>New webhook</button>
      </div>
    <//>
    <div class="tools" role="search">
      <label>State <select value=${state} onChange=${set('state')}>
        <option value="">All</option>${Object.entries(STATES).map(([name, label]) => html`<option value=${name}>${label}</option>`)}
      </select></label>
      <label>Client <select value=${client} onChange=${set('client')}>
        <option value="">All, and users</option>${names.map((name) => html`<option value=${name}>${name}</option>`)}
      </select></label>
    </div>
    <${Pending} of="the webhooks" data=${data} failure=${failure} again=${reload} />
    ${
      data !== undefined &&
      html`<${Table} label="Webhooks" columns=${COLUMNS} rows=${data.webhooks} keyOf=${(/** @type {ListedWebhook} */ { id }) => id}
          isBusy=${isLoading} empty="No webhook. One sends a signed request to your server after an operation has succeeded." />
        <${Pager} shown=${data.webhooks.length} offset=${offset} limit=${LIMIT} total=${data.total} />`
    }`
}
