import { useState } from 'preact/hooks'
import { ApiError, auth, call } from '../api.js'
import { ActForm, Field, Link, Mark, Pager, Pending, Search, say, Table, Title, take } from '../controls.js'
import { useExactCount, useLoad } from '../hooks.js'
import { html } from '../html.js'
import { addressOf, go, offsetIn } from '../router.js'
import { may } from '../session.js'
import { counted, Time, Value } from '../values.js'
import { OrganizationView } from './organizations/organization.js'

const LIMIT = 50

/** @param {import('../router.js').ViewProps} props */
export function View({ caller, rest, query }) {
  if (rest !== '') return html`<${OrganizationView} key=${rest} id=${rest} caller=${caller} query=${query} />`
  return html`<${Organizations} caller=${caller} query=${query} />`
}

/** @typedef {{ id: string, name: string, slug: string, requireTwoFactor: boolean, memberCount: number, createdAt: string }} Summary */

/** @type {readonly import('../controls.js').Column<Summary>[]} */
const COLUMNS = [
  {
    name: 'name',
    title: 'Name',
    cell: ({ id, name }) =>
      html`<${Link} to=${`/organizations/${id}`}><${Value} value=${name} most=${100} /><//>`,
  },
  { name: 'slug', title: 'Slug', cell: ({ slug }) => html`<${Value} value=${slug} />` },
  { name: 'members', title: 'Members', isNumber: true, cell: ({ memberCount }) => counted(memberCount) },
  {
    name: 'factor',
    title: 'Second factor',
    cell: ({ requireTwoFactor }) => requireTwoFactor && html`<${Mark} tone="good">required<//>`,
  },
  { name: 'createdAt', title: 'Created', cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
]

/** @param {{ id: string }} row */
const idOf = ({ id }) => id

/** Newest first. @param {Pick<import('../router.js').ViewProps, 'caller' | 'query'>} props */
function Organizations({ caller, query }) {
  const { search = '' } = query
  const offset = offsetIn(query.offset)
  const [isExact, countExactly] = useExactCount(search)
  const asked = { searchValue: search, limit: LIMIT, offset, ...(isExact && { count: 'exact' }) }
  const { data, failure, isLoading, reload } = useLoad(
    (signal) => call(auth('/admin/list-organizations'), { query: asked, signal }),
    [JSON.stringify(asked)],
  )
  const [isAdding, setAdding] = useState(false)
  // Another person is found by the address, and needs the right to be changed.
  const mayAdd = caller.person !== undefined && caller.allows.has('user:update') && may(caller, ['user:list'])
  return html`<${Title} title="Organizations">
      ${mayAdd && html`<button type="button" class="primary" onClick=${() => setAdding(true)}>New organization</button>`}
    <//>
    <div class="tools" role="search"><${Search} search=${search} placeholder="Part of a name or slug" /></div>
    <${Pending} of="the organizations" data=${data} failure=${failure} again=${reload} />
    ${
      data !== undefined &&
      html`<${Table} label="Organizations" columns=${COLUMNS} rows=${data.organizations} keyOf=${idOf}
          isBusy=${isLoading} empty="No organization matches." />
        <div class="row">
          <${Pager} shown=${data.organizations.length} offset=${offset} limit=${LIMIT} total=${data.total} isEstimated=${data.totalEstimated} />
          ${data.totalEstimated && html`<button type="button" class="plain" onClick=${countExactly}>Count exactly</button>`}
        </div>`
    }
    ${isAdding && html`<${NewOrganization} onClose=${() => setAdding(false)} />`}`
}

/** @param {{ onClose: () => void }} props */
function NewOrganization({ onClose }) {
  const [name, setName] = useState('')
  const [slug, setSlug] = useState('')
  const [email, setEmail] = useState('')
  const work = async () => {
    const userId = await idOfUser(email.trim())
    const body = { name, slug, userId, keepCurrentActiveOrganization: true }
    const { id } = await call(auth('/organization/create'), { method: 'POST', body })
    say(`${name} was created`)
    onClose()
    go(addressOf(`/organizations/${id}`))
  }
  return html`<${ActForm} title="New organization" verb="Create" onClose=${onClose} work=${work}>
    <${Field} label="Name" required autofocus autocomplete="off" value=${name} onInput=${take(setName)} />
    <${Field} label="Slug" required autocomplete="off" value=${slug} onInput=${take(setSlug)} hint="A part of addresses: a-z, 0-9, “.”, “_” and “-”" />
    <${Field} label="Owner" type="email" required autocomplete="off" value=${email} onInput=${take(setEmail)} hint="The email of a user" />
  <//>`
}

/** @param {string} email @returns {Promise<string>} */
async function idOfUser(email) {
  const query = { filterField: 'email', filterValue: email.toLowerCase(), limit: 1 }
  const { users } = await call(auth('/admin/list-users'), { query })
  if (users[0] !== undefined) return users[0].id
  throw new ApiError({
    status: 404,
    code: 'user_not_found',
    message: 'There is no user with this email.',
    hint: 'Create the user first, on the screen Users.',
  })
}
