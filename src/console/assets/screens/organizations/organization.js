import { auth, call } from '../../api.js'
import { Fact, Failure, Link, Mark, Panel, Pending, Table, Title } from '../../controls.js'
import { useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { offsetIn } from '../../router.js'
import { may } from '../../session.js'
import { ShortId, Time, Value } from '../../values.js'
import { Acts } from './acts.js'
import { Invitations } from './invitations.js'
import { Members } from './members.js'
import { indented } from './metadata.js'

/** @typedef {{ id: string, name: string, slug: string, logo: string | null, metadata: string, requireTwoFactor: boolean, createdAt: string }} Organization */

/** One organization. @param {{ id: string, caller: import('../../session.js').Caller, query: import('../../router.js').Query }} props */
export function OrganizationView({ id, caller, query }) {
  const { data, failure, reload } = useLoad(
    (signal) => call(auth('/admin/get-organization'), { query: { organizationId: id }, signal }),
    [id],
  )
  const organization = /** @type {Organization | undefined} */ (data)
  const crumb = html`<p class="crumb"><${Link} to="/organizations">Organizations<//></p>`
  if (organization === undefined)
    return html`${crumb}<${Title} title="Organization" /><${Pending} of="the organization" failure=${failure} again=${reload} />`
  // Members and invitations are addresses of people.
  const seesPeople = may(caller, ['user:list'])
  return html`${crumb}
    <${Title} title=${organization.name}>${organization.requireTwoFactor && html`<${Mark} tone="good">second factor required<//>`}<//>
    <${Failure} of=${failure} again=${reload} />
    <${Acts} organization=${organization} caller=${caller} reload=${reload} />
    ${seesPeople && html`<${Members} organization=${organization} caller=${caller} offset=${offsetIn(query.members)} />`}
    ${seesPeople && html`<${Invitations} organization=${organization} caller=${caller} offset=${offsetIn(query.invitations)} />`}
    <div class="columns">
      <${Profile} organization=${organization} />
      <${Panel} title="Metadata"><pre class="metadata"><${Value} value=${indented(organization.metadata)} most=${20_000} /></pre><//>
    </div>
    ${may(caller, ['audit:list']) && html`<${Trail} id=${organization.id} />`}`
}

/** @param {{ organization: Organization }} props */
const Profile = ({ organization: { id, slug, logo, createdAt } }) => html`<${Panel} title="Profile">
  <dl class="facts">
    <${Fact} name="Id"><code>${id}</code><//>
    <${Fact} name="Slug"><${Value} value=${slug} /><//>
    <${Fact} name="Logo"><${Value} value=${logo ?? '–'} /><//>
    <${Fact} name="Created"><${Time} at=${createdAt} /><//>
  </dl>
<//>`

/** @typedef {{ id: string, occurredAt: string, actorId: string, action: string, outcome: string, targetType: string | null, targetId: string | null }} AuditEvent */

/** @type {readonly import('../../controls.js').Column<AuditEvent>[]} */
const TRAIL = [
  { name: 'occurredAt', title: 'Time', cell: ({ occurredAt }) => html`<${Time} at=${occurredAt} />` },
  { name: 'action', title: 'Act', cell: ({ action }) => html`<code>${action}</code>` },
  { name: 'actorId', title: 'By', cell: ({ actorId }) => html`<${ShortId} of=${actorId} />` },
  {
    name: 'targetId',
    title: 'On',
    cell: ({ targetType, targetId }) =>
      targetId !== null && html`<span class="soft">${targetType}</span> <${ShortId} of=${targetId} />`,
  },
]

/** @param {{ id: string }} row */
const idOf = ({ id }) => id

/** The last acts in the organization. @param {{ id: string }} props */
function Trail({ id }) {
  const query = { organizationId: id, limit: 20 }
  const { data, failure, reload } = useLoad(
    (signal) => call(auth('/admin/list-audit-events'), { query, signal }),
    [id],
  )
  return html`<${Panel} title="Audit" actions=${html`<${Link} to="/audit" query=${{ organization: id }}>All of it<//>`}>
    <${Pending} of="the trail" data=${data} failure=${failure} again=${reload} />
    ${data !== undefined && html`<${Table} label="Last acts" columns=${TRAIL} rows=${data.events} keyOf=${idOf} />`}
  <//>`
}
