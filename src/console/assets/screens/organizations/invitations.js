import { useState } from 'preact/hooks'
import { ask, auth, call } from '../../api.js'
import { ActForm, Failure, Field, Mark, Pager, Panel, Pending, say, Table, take } from '../../controls.js'
import { useAct, useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { may } from '../../session.js'
import { Time, Value } from '../../values.js'
import { post } from './acts.js'
import { ROLES_HINT } from './members.js'

const LIMIT = 20

/** @typedef {{ id: string, email: string, role: string, status: string, expiresAt: string, createdAt: string }} Invitation */

/** @param {{ id: string }} row */
const idOf = ({ id }) => id

/** @param {Invitation} invitation */
const stateOf = ({ status, expiresAt }) =>
  status === 'pending' && Date.parse(expiresAt) <= Date.now() ? 'expired' : status

/** @type {Readonly<Record<string, 'good' | 'warn' | 'plain'>>} */
const TONES = { pending: 'warn', accepted: 'good' }

/** @type {readonly import('../../controls.js').Column<Invitation>[]} */
const COLUMNS = [
  { name: 'email', title: 'Email', cell: ({ email }) => html`<${Value} value=${email} />` },
  { name: 'role', title: 'Role', cell: ({ role }) => html`<${Value} value=${role} />` },
  {
    name: 'state',
    title: 'State',
    cell: (one) => html`<${Mark} tone=${TONES[stateOf(one)] ?? 'plain'}>${stateOf(one)}<//>`,
  },
  { name: 'createdAt', title: 'Invited', cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
  { name: 'expiresAt', title: 'Ends', cell: ({ expiresAt }) => html`<${Time} at=${expiresAt} />` },
]

/** In any state, newest first. @param {{ organization: import('./organization.js').Organization, caller: import('../../session.js').Caller, offset: number }} props */
export function Invitations({ organization: { id: organizationId, name }, caller, offset }) {
  const query = { organizationId, limit: LIMIT + 1, offset }
  const { data, failure, isLoading, reload } = useLoad(
    (signal) => call(auth('/admin/list-organization-invitations'), { query, signal }),
    [organizationId, offset],
  )
  const act = useAct()
  const [isInviting, setInviting] = useState(false)
  /** @type {readonly Invitation[]} */
  const found = data?.invitations ?? []
  const shown = found.slice(0, LIMIT)
  const hasMore = found.length > LIMIT
  const finish = (/** @type {string} */ done) => {
    setInviting(false)
    say(done)
    reload()
  }
  const resend = (/** @type {Invitation} */ { email, role }) =>
    act.run(async () => {
      await post('/admin/invite-member', { organizationId, email, role, resend: true })
      finish(`${email} gets another mail`)
    })
  const cancel = async (/** @type {Invitation} */ { id: invitationId, email }) => {
    const text = `The link in the mail to ${email} opens ${name} no more.`
    const question = {
      title: 'Cancel the invitation?',
      text,
      verb: 'Cancel the invitation',
      isDangerous: true,
    }
    if (!(await ask({ kind: 'consent', ...question }))) return
    await act.run(async () => {
      await post('/admin/cancel-invitation', { invitationId })
      finish(`The invitation of ${email} is canceled`)
    })
  }
  const mayManage = may(caller, ['organization:manage-members'])
  const acts = {
    name: 'act',
    title: html`<span class="hidden">Act</span>`,
    cell: (/** @type {Invitation} */ one) =>
      ['pending', 'expired'].includes(stateOf(one)) &&
      html`<span class="row-acts">
        <button type="button" disabled=${act.isBusy} onClick=${() => resend(one)}>Mail again</button>
        ${stateOf(one) === 'pending' && html`<button type="button" class="danger" disabled=${act.isBusy} onClick=${() => cancel(one)}>Cancel</button>`}
      </span>`,
  }
  const invite = mayManage && html`<button type="button" onClick=${() => setInviting(true)}>Invite</button>`
  return html`<${Panel} title="Invitations" actions=${invite}>
    <${Pending} of="the invitations" data=${data} failure=${failure} again=${reload} />
    <${Failure} of=${act.failure} />
    ${
      data !== undefined &&
      html`<${Table} label="List of invitations" columns=${mayManage ? [...COLUMNS, acts] : COLUMNS} rows=${shown} keyOf=${idOf} isBusy=${isLoading} empty="Nobody is invited." />
        ${(hasMore || offset > 0) && html`<${Pager} name="invitations" shown=${shown.length} offset=${offset} limit=${LIMIT} hasMore=${hasMore} />`}`
    }
    ${isInviting && html`<${InviteForm} organizationId=${organizationId} name=${name} onDone=${finish} onClose=${() => setInviting(false)} />`}
  <//>`
}

/** @param {{ organizationId: string, name: string, onDone: (done: string) => void, onClose: () => void }} props */
function InviteForm({ organizationId, name, onDone, onClose }) {
  const [email, setEmail] = useState('')
  const [role, setRole] = useState('member')
  const work = async () => {
    await post('/admin/invite-member', { organizationId, email, role })
    onDone(`${email} is invited`)
  }
  return html`<${ActForm} title=${`Invite to ${name}`} verb="Invite" onClose=${onClose} work=${work}>
    <p>The mail names you as the inviter.</p>
    <${Field} label="Email" type="email" required autofocus autocomplete="off" value=${email} onInput=${take(setEmail)} />
    <${Field} label="Role" required autocomplete="off" value=${role} onInput=${take(setRole)} hint=${ROLES_HINT} />
  <//>`
}
