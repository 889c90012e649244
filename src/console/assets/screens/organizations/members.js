import { useState } from 'preact/hooks'
import { ask, auth, call } from '../../api.js'
import { ActForm, Failure, Field, Link, Pager, Panel, Pending, say, Table, take } from '../../controls.js'
import { useAct, useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { may } from '../../session.js'
import { countOf, Time, Value } from '../../values.js'
import { post } from './acts.js'

const LIMIT = 20
export const ROLES_HINT =
  'owner, admin, member, or a role of auth.organization.roles; several are joined by commas'

/** @typedef {{ id: string, userId: string, role: string, createdAt: string, user: { name: string, email: string } }} Member */

/** @param {{ id: string }} row */
const idOf = ({ id }) => id

/** @param {{ organization: import('./organization.js').Organization, caller: import('../../session.js').Caller, offset: number }} props */
export function Members({ organization: { id: organizationId, name }, caller, offset }) {
  const query = { organizationId, limit: LIMIT, offset }
  const { data, failure, isLoading, reload } = useLoad(
    (signal) => call(auth('/admin/list-organization-members'), { query, signal }),
    [organizationId, offset],
  )
  const act = useAct()
  const [changing, setChanging] = useState(/** @type {Member | undefined} */ (undefined))
  /** @type {readonly Member[]} */
  const members = data?.members ?? []
  const close = () => setChanging(undefined)
  const finish = (/** @type {string} */ done) => {
    close()
    say(done)
    reload()
  }
  const remove = async (/** @type {Member} */ { id: memberId, user }) => {
    const text = `${user.email} loses the roles in ${name} at once. The account stays.`
    const question = { title: `Remove ${user.name}?`, text, verb: 'Remove the member', isDangerous: true }
    if (!(await ask({ kind: 'consent', ...question }))) return
    await act.run(async () => {
      await post('/admin/remove-member', { organizationId, memberId })
      finish(`${user.name} is no member any more`)
    })
  }
  const mayManage = may(caller, ['organization:manage-members'])
  const linksUsers = may(caller, ['user:get'])
  /** @type {readonly import('../../controls.js').Column<Member>[]} */
  const columns = [
    {
      name: 'name',
      title: 'Name',
      cell: ({ userId, user }) =>
        linksUsers
          ? html`<${Link} to=${`/users/${userId}`}><${Value} value=${user.name} most=${100} /><//>`
          : html`<${Value} value=${user.name} most=${100} />`,
    },
    { name: 'email', title: 'Email', cell: ({ user }) => html`<${Value} value=${user.email} />` },
    { name: 'role', title: 'Role', cell: ({ role }) => html`<${Value} value=${role} />` },
    { name: 'createdAt', title: 'Joined', cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
  ]
  const acts = {
    name: 'act',
    title: html`<span class="hidden">Act</span>`,
    cell: (/** @type {Member} */ one) => html`<span class="row-acts">
      <button type="button" disabled=${act.isBusy} onClick=${() => setChanging(one)}>Change role</button>
      <button type="button" class="danger" disabled=${act.isBusy} onClick=${() => remove(one)}>Remove</button>
    </span>`,
  }
  return html`<${Panel} title="Members" note=${data && countOf(data.total, 'member')}>
    <${Pending} of="the members" data=${data} failure=${failure} again=${reload} />
    <${Failure} of=${act.failure} />
    ${
      data !== undefined &&
      html`<${Table} label="List of members" columns=${mayManage ? [...columns, acts] : columns} rows=${members} keyOf=${idOf} isBusy=${isLoading} />
        ${data.total > LIMIT && html`<${Pager} name="members" shown=${members.length} offset=${offset} limit=${LIMIT} total=${data.total} />`}`
    }
    ${changing && html`<${RoleForm} organizationId=${organizationId} member=${changing} onDone=${finish} onClose=${close} />`}
  <//>`
}

/** @param {{ organizationId: string, member: Member, onDone: (done: string) => void, onClose: () => void }} props */
function RoleForm({ organizationId, member: { id: memberId, role: before, user }, onDone, onClose }) {
  const [role, setRole] = useState(before)
  const work = async () => {
    await post('/admin/update-member-role', { organizationId, memberId, role })
    onDone(`${user.name} has the role ${role}`)
  }
  return html`<${ActForm} title=${`Role of ${user.name}`} verb="Change role" onClose=${onClose} work=${work}>
    <${Field} label="Role" required autofocus autocomplete="off" value=${role} onInput=${take(setRole)} hint=${ROLES_HINT} />
  <//>`
}
