import { useState } from 'preact/hooks'
import { auth, call } from '../api.js'
import {
  Dialog,
  Failure,
  Field,
  Link,
  Mark,
  Pager,
  Pending,
  Search,
  say,
  Table,
  Title,
  take,
} from '../controls.js'
import { useAct, useExactCount, useLoad } from '../hooks.js'
import { html } from '../html.js'
import { addressOf, go, goWith, offsetIn } from '../router.js'
import { may } from '../session.js'
import { Time, Value } from '../values.js'
import { State } from './users/state.js'
import { UserView } from './users/user.js'

const LIMIT = 50

/** @param {import('../router.js').ViewProps} props */
export function View({ caller, rest, query }) {
  if (rest !== '') return html`<${UserView} key=${rest} id=${rest} caller=${caller} query=${query} />`
  return html`<${Users} caller=${caller} query=${query} />`
}

/** @typedef {import('./users/state.js').User} User */

/** @type {readonly import('../controls.js').Column<User>[]} */
const COLUMNS = [
  {
    name: 'name',
    title: 'Name',
    sorts: true,
    cell: ({ id, name }) => html`<${Link} to=${`/users/${id}`}><${Value} value=${name} most=${100} /><//>`,
  },
  {
    name: 'email',
    title: 'Email',
    sorts: true,
    cell: ({ email, emailVerified }) =>
      html`<${Value} value=${email} />${!emailVerified && html` <${Mark}>unverified<//>`}`,
  },
  { name: 'role', title: 'Role', sorts: true, cell: ({ role }) => html`<${Value} value=${role} />` },
  { name: 'state', title: 'State', cell: (user) => html`<${State} user=${user} />` },
  {
    name: 'createdAt',
    title: 'Created',
    sorts: true,
    cell: ({ createdAt }) => html`<${Time} at=${createdAt} />`,
  },
]

/** Filters that an address can name. @type {Readonly<Record<string, readonly [label: string, field: string, value: string]>>} */
const FILTERS = {
  admins: ['Admins', 'role', 'admin'],
  banned: ['Banned', 'banned', 'true'],
  unverified: ['Unverified', 'emailVerified', 'false'],
  'two-factor': ['With two-factor', 'twoFactorEnabled', 'true'],
  anonymous: ['Anonymous', 'isAnonymous', 'true'],
}

/** @param {Pick<import('../router.js').ViewProps, 'caller' | 'query'>} props */
function Users({ caller, query }) {
  const { search = '', in: field = 'email', filter = '', sort = 'createdAt', dir = 'desc' } = query
  const [isExact, countExactly] = useExactCount(JSON.stringify([search, field, filter]))
  const offset = offsetIn(query.offset)
  const [, filterField, filterValue] = (Object.hasOwn(FILTERS, filter) && FILTERS[filter]) || []
  const asked = {
    ...(search !== '' && { searchValue: search, searchField: field }),
    ...(filterField !== undefined && { filterField, filterValue }),
    ...{ sortBy: sort, sortDirection: dir, limit: LIMIT, offset },
    ...(isExact && { count: 'exact' }),
  }
  const { data, failure, isLoading, reload } = useLoad(
    (signal) => call(auth('/admin/list-users'), { query: asked, signal }),
    [JSON.stringify(asked)],
  )
  const [isAdding, setAdding] = useState(false)
  return html`<${Title} title="Users">
      ${may(caller, ['user:create']) && html`<button type="button" class="primary" onClick=${() => setAdding(true)}>New user</button>`}
    <//>
    <div class="tools" role="search">
      <${Search} search=${search} placeholder="Part of an address or name" />
      <label>in <select value=${field} onChange=${take((value) => goWith({ in: value === 'email' ? undefined : value, offset: undefined }))}>
        <option value="email">email</option><option value="name">name</option>
      </select></label>
      <label>Show <select value=${filter} onChange=${take((value) => goWith({ filter: value, offset: undefined }))}>
        <option value="">All</option>${Object.entries(FILTERS).map(([name, [label]]) => html`<option value=${name}>${label}</option>`)}
      </select></label>
    </div>
    <${Pending} of="the users" data=${data} failure=${failure} again=${reload} />
    ${
      data !== undefined &&
      html`<${Table} label="Users" columns=${COLUMNS} rows=${data.users} keyOf=${idOf}
          sort=${sort} dir=${dir} isBusy=${isLoading} empty="No user matches." />
        <div class="row">
          <${Pager} shown=${data.users.length} offset=${offset} limit=${LIMIT} total=${data.total} isEstimated=${data.totalEstimated} />
          ${data.totalEstimated && html`<button type="button" class="plain" onClick=${countExactly}>Count exactly</button>`}
        </div>`
    }
    ${isAdding && html`<${NewUser} onClose=${() => setAdding(false)} />`}`
}

/** @param {{ id: string }} row */
const idOf = ({ id }) => id

/** @param {{ onClose: () => void }} props */
function NewUser({ onClose }) {
  const [name, setName] = useState('')
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const { run, isBusy, failure } = useAct()
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    return run(async () => {
      const body = { name, email, password }
      const { user } = await call(auth('/admin/create-user'), { method: 'POST', body })
      say(`${email} was created`)
      onClose()
      go(addressOf(`/users/${user.id}`))
    })
  }
  return html`<${Dialog} title="New user" onClose=${onClose}>
    <form onSubmit=${submit}>
      <${Field} label="Name" required autofocus autocomplete="off" maxlength="100" value=${name} onInput=${take(setName)} />
      <${Field} label="Email" type="email" required autocomplete="off" value=${email} onInput=${take(setEmail)} />
      <${Field} label="Password" type="password" required autocomplete="new-password" value=${password} onInput=${take(setPassword)} />
      <${Failure} of=${failure} />
      <div class="row">
        <button class="primary" disabled=${isBusy}>Create</button>
        <button type="button" onClick=${onClose}>Cancel</button>
      </div>
    </form>
  <//>`
}
