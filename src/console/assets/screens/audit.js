import { useState } from 'preact/hooks'
import { auth, call } from '../api.js'
import { Link, Mark, Pending, Table, Title, take } from '../controls.js'
import { useLoad } from '../hooks.js'
import { html } from '../html.js'
import { goWith } from '../router.js'
import { may } from '../session.js'
import { ShortId, Time, textOf, Value } from '../values.js'

const LIMIT = 100

/** @typedef {{ id: string, occurredAt: string, actorId: string, onBehalfOf: string | null, action: string, targetType: string | null, targetId: string | null, clientName: string | null, ipAddress: string | null, requestId: string | null, outcome: string, count: number, details: object }} AuditEvent */

const DAY = /^\d{4}-\d\d-\d\d$/
const USER_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** @param {boolean} linksUsers @returns {readonly import('../controls.js').Column<AuditEvent>[]} */
const columnsFor = (linksUsers) => {
  const name = (/** @type {string | null} */ id) =>
    id !== null && linksUsers && USER_ID.test(id)
      ? html`<${Link} to=${`/users/${id}`}><${ShortId} of=${id} /><//>`
      : html`<${ShortId} of=${id ?? ''} />`
  return [
    { name: 'occurredAt', title: 'Time', cell: ({ occurredAt }) => html`<${Time} at=${occurredAt} />` },
    {
      name: 'action',
      title: 'Act',
      cell: ({ action, outcome, count }) =>
        html`<code class="id">${action}</code>${count > 1 && html` ×${count}`}${outcome === 'failure' && html` <${Mark} tone="bad">refused<//>`}`,
    },
    {
      name: 'actorId',
      title: 'By',
      cell: ({ actorId, onBehalfOf }) =>
        html`${name(actorId)}${onBehalfOf !== null && html`<br /><span class="soft">as</span> ${name(onBehalfOf)}`}`,
    },
    {
      name: 'targetId',
      title: 'On',
      cell: ({ targetType, targetId }) =>
        targetId !== null &&
        html`<span class="id"><span class="soft">${targetType ?? ''}</span> ${
          targetType === 'user' ? name(targetId) : html`<${ShortId} of=${targetId} />`
        }</span>`,
    },
    {
      name: 'clientName',
      title: 'Client',
      cell: ({ clientName }) => clientName !== null && html`<${Value} value=${clientName} />`,
    },
    {
      name: 'ipAddress',
      title: 'Address',
      cell: ({ ipAddress }) => ipAddress !== null && html`<${Value} value=${ipAddress} />`,
    },
    {
      name: 'details',
      title: 'Details',
      cell: ({ details }) =>
        Object.entries(details).map(
          ([name, value]) =>
            html`<span class="detail"><span class="soft">${name}</span> <${ShortId} of=${textOf(value)} /></span> `,
        ),
    },
  ]
}

/** @param {AuditEvent} event */
const idOf = ({ id }) => id

/** The audit trail, newest first. @param {import('../router.js').ViewProps} props */
export function View({ caller, query }) {
  const { actor = '', target = '', action = '', organization = '', cursor = '' } = query
  const from = DAY.test(query.from ?? '') ? (query.from ?? '') : ''
  const asked = {
    actorId: actor,
    targetId: target,
    action,
    organizationId: organization,
    from,
    cursor,
    limit: LIMIT,
  }
  const { data, failure, isLoading, reload } = useLoad(
    (signal) => call(auth('/admin/list-audit-events'), { query: asked, signal }),
    [JSON.stringify(asked)],
  )
  // Links lead to users only where their list is open.
  const linksUsers = may(caller, ['user:get'])
  return html`<${Title} title="Audit" />
    <${Filters} key=${JSON.stringify([actor, target, action, organization, from])} actor=${actor} target=${target} action=${action}
      organization=${organization} from=${from} />
    <${Pending} of="the trail" data=${data} failure=${failure} again=${reload} />
    ${
      data !== undefined &&
      html`<${Table} label="Audit events" columns=${columnsFor(linksUsers)} rows=${data.events} keyOf=${idOf}
          isBusy=${isLoading} empty="No event matches." />
        <nav class="pager" aria-label="Pages">
          <button type="button" disabled=${cursor === ''} onClick=${() => goWith({ cursor: undefined })}>Newest</button>
          <button type="button" disabled=${data.nextCursor === null} onClick=${() => goWith({ cursor: data.nextCursor })}>Older</button>
        </nav>`
    }`
}

/** @param {{ actor: string, target: string, action: string, organization: string, from: string }} given */
function Filters(given) {
  const [typed, setTyped] = useState(given)
  const set = (/** @type {keyof typeof given} */ name) =>
    take((value) => setTyped({ ...typed, [name]: value.trim() }))
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    goWith({ ...typed, cursor: undefined })
  }
  return html`<form class="tools" role="search" onSubmit=${submit}>
    <label>Act <input type="search" value=${typed.action} onInput=${set('action')} placeholder="user.banned" /></label>
    <label>By <input value=${typed.actor} onInput=${set('actor')} placeholder="id, admin-key, cli" /></label>
    <label>On <input value=${typed.target} onInput=${set('target')} placeholder="id" /></label>
    <label>In <input value=${typed.organization} onInput=${set('organization')} placeholder="organization id" /></label>
    <label>Since <input type="date" value=${typed.from} onInput=${set('from')} /></label>
    <button>Filter</button>
  </form>`
}
