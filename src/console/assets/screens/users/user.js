import { ask, auth, call } from '../../api.js'
import { Fact, Failure, Line, Link, Mark, Pager, Panel, Pending, say, Table, Title } from '../../controls.js'
import { useAct, useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { offsetIn } from '../../router.js'
import { may } from '../../session.js'
import { countOf, ShortId, Time, Value } from '../../values.js'
import { Acts } from './acts.js'
import { State } from './state.js'

/** @typedef {import('./state.js').User & { username: string | null, image: string | null, updatedAt: string, banReason: string | null, banExpires: string | null }} FullUser */

/** @param {{ id: string }} row */
const idOf = ({ id }) => id

/** One user. @param {{ id: string, caller: import('../../session.js').Caller, query: import('../../router.js').Query }} props */
export function UserView({ id, caller, query }) {
  const { data, failure, reload } = useLoad(
    (signal) => call(auth('/admin/get-user'), { query: { id }, signal }),
    [id],
  )
  const user = /** @type {FullUser | undefined} */ (data)
  if (user === undefined)
    return html`<p><${Link} to="/users">Users<//></p><${Title} title="User" /><${Pending} of="the user" failure=${failure} again=${reload} />`
  const isSelf = caller.person?.id === user.id
  return html`<p class="crumb"><${Link} to="/users">Users<//></p>
    <${Title} title=${user.name}><${State} user=${user} /><//>
    <${Failure} of=${failure} again=${reload} />
    <${Acts} user=${user} caller=${caller} isSelf=${isSelf} reload=${reload} />
    <${Profile} user=${user} />
    ${may(caller, ['session:list']) && html`<${Sessions} user=${user} caller=${caller} />`}
    <div class="columns">
      <${Accounts} id=${id} />
      <${Factors} id=${id} />
      ${may(caller, ['organization:list']) && html`<${Organizations} id=${id} offset=${offsetIn(query.organizations)} />`}
    </div>
    ${may(caller, ['audit:list']) && html`<${Trail} id=${id} />`}`
}

/** @param {{ user: FullUser }} props */
function Profile({ user }) {
  const { email, emailVerified, banned, banExpires, banReason } = user
  return html`<${Panel} title="Profile">
    <dl class="facts">
      <${Fact} name="Id"><code>${user.id}</code><//>
      <${Fact} name="Email"><${Value} value=${email} />${!emailVerified && html` <${Mark}>unverified<//>`}<//>
      <${Fact} name="Username"><${Value} value=${user.username ?? '–'} /><//>
      <${Fact} name="Role"><${Value} value=${user.role} /><//>
      <${Fact} name="Created"><${Time} at=${user.createdAt} /><//>
      <${Fact} name="Changed"><${Time} at=${user.updatedAt} /><//>
      ${
        banned &&
        html`<${Fact} name="Banned">
          ${banExpires === null ? 'until lifted' : html`until <${Time} at=${banExpires} />`}
          ${banReason !== null && html` · <${Value} value=${banReason} />`}
        <//>`
      }
    </dl>
  <//>`
}

/** @typedef {{ id: string, token: string, createdAt: string, updatedAt: string, expiresAt: string, ipAddress: string | null, userAgent: string | null, impersonatedBy: string | null, current: boolean }} UserSession */

/** @param {{ user: FullUser, caller: import('../../session.js').Caller }} props */
function Sessions({ user, caller }) {
  const { data, failure, reload } = useLoad(
    (signal) =>
      call(auth('/admin/list-user-sessions'), {
        method: 'POST',

        body: { userId: user.id },
        signal,
      }),
    [user.id, user.updatedAt],
  )
  const act = useAct()
  const mayRevoke = may(caller, ['session:revoke'])
  /** @type {readonly UserSession[]} */
  const sessions = data?.sessions ?? []
  const end = (/** @type {string} */ path, /** @type {object} */ body, /** @type {string} */ done) =>
    act.run(async () => {
      await call(auth(path), { method: 'POST', body })
      say(done)
      reload()
    })
  const endOne = (/** @type {UserSession} */ { token }) =>
    end('/admin/revoke-user-session', { sessionToken: token }, 'The session has ended')
  const endAll = async () => {
    const question = {
      title: 'End all sessions?',
      text: `${user.name} is signed out everywhere, at once.`,
      verb: 'End all sessions',
    }
    if (await ask({ kind: 'consent', isDangerous: true, ...question }))
      await end('/admin/revoke-user-sessions', { userId: user.id }, 'All sessions have ended')
  }
  const revoke =
    mayRevoke &&
    sessions.length > 0 &&
    html`<button type="button" disabled=${act.isBusy} onClick=${endAll}>End all</button>`
  /** @type {readonly import('../../controls.js').Column<UserSession>[]} */
  const columns = [
    { name: 'createdAt', title: 'Began', cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
    { name: 'expiresAt', title: 'Ends', cell: ({ expiresAt }) => html`<${Time} at=${expiresAt} />` },
    { name: 'ipAddress', title: 'Address', cell: ({ ipAddress }) => html`<${Value} value=${ipAddress} />` },
    {
      name: 'userAgent',
      title: 'Program',
      cell: ({ userAgent }) => html`<${Value} value=${userAgent} most=${90} />`,
    },
    {
      name: 'act',
      title: html`<span class="hidden">Act</span>`,
      cell: (one) =>
        html`${one.impersonatedBy !== null && html`<${Mark} tone="warn">impersonated<//> `}${
          one.current
            ? html`<${Mark} tone="good">this one<//>`
            : mayRevoke &&
              html`<button type="button" disabled=${act.isBusy} onClick=${() => endOne(one)}>End</button>`
        }`,
    },
  ]
  return html`<${Panel} title="Sessions" note=${data && countOf(sessions.length, 'session')} actions=${revoke}>
    <${Pending} of="the sessions" data=${data} failure=${failure} again=${reload} />
    <${Failure} of=${act.failure} />
    ${
      data !== undefined &&
      html`<${Table} label="Live sessions" columns=${columns} rows=${sessions} keyOf=${idOf} empty="Not signed in anywhere." />`
    }
  <//>`
}

/** @param {{ id: string }} props */
function Accounts({ id }) {
  const { data, failure, reload } = useLoad(
    (signal) => call(auth('/admin/list-user-accounts'), { query: { userId: id }, signal }),
    [id],
  )
  /** @type {readonly { id: string, providerId: string, accountId: string, createdAt: string }[]} */
  const accounts = data?.accounts ?? []
  return html`<${Panel} title="Ways in">
    <${Pending} of="the ways in" data=${data} failure=${failure} again=${reload} />
    ${data !== undefined && accounts.length === 0 && html`<p class="empty">No password and no account at a provider.</p>`}
    <ul class="list">${accounts.map(
      ({
        id,
        providerId,
        accountId,
        createdAt,
      }) => html`<${Line} key=${id} right=${html`<${Time} at=${createdAt} />`}
        left=${providerId === 'credential' ? 'Password' : html`<${Value} value=${providerId} />`}
        note=${providerId === 'credential' ? undefined : html`<${Value} value=${accountId} />`} />`,
    )}</ul>
  <//>`
}

/** @param {{ id: string }} props */
function Factors({ id }) {
  const { data, failure, reload } = useLoad(
    (signal) => call(auth('/admin/list-user-factors'), { query: { userId: id }, signal }),
    [id],
  )
  /** @type {readonly { id: string, name: string | null, createdAt: string }[]} */
  const passkeys = data?.passkeys ?? []
  const factor = data?.twoFactor
  const said = factor ? `${factor.method}, ${countOf(factor.backupCodes, 'backup code')} left` : 'none'
  return html`<${Panel} title="Factors">
    <${Pending} of="the factors" data=${data} failure=${failure} again=${reload} />
    ${
      data !== undefined &&
      html`<ul class="list">
        <${Line} left="Second factor" right=${said} />
        <${Line} left="Browsers that need no code" right=${data.trustedDevices} />
        ${passkeys.map(
          ({ id, name, createdAt }) =>
            html`<${Line} key=${id} left="Passkey" note=${html`<${Value} value=${name} />`} right=${html`<${Time} at=${createdAt} />`} />`,
        )}
      </ul>`
    }
  <//>`
}

/** Organizations of a page. */
const LIMIT = 20

/** @param {{ id: string, offset: number }} props */
function Organizations({ id, offset }) {
  const query = { userId: id, limit: LIMIT + 1, offset }
  const { data, failure, reload } = useLoad(
    (signal) => call(auth('/admin/list-user-organizations'), { query, signal }),
    [id, offset],
  )
  /** @type {readonly { id: string, name: string, slug: string, role: string }[]} */
  const found = data?.organizations ?? []
  const organizations = found.slice(0, LIMIT)
  const hasMore = found.length > LIMIT
  return html`<${Panel} title="Organizations">
    <${Pending} of="the organizations" data=${data} failure=${failure} again=${reload} />
    ${data !== undefined && organizations.length === 0 && html`<p class="empty">A member of none.</p>`}
    <ul class="list">${organizations.map(
      ({ id, name, slug, role }) =>
        html`<${Line} key=${id} left=${html`<${Link} to=${`/organizations/${id}`}><${Value} value=${name} /><//>`} note=${slug} right=${role} />`,
    )}</ul>
    ${(hasMore || offset > 0) && html`<${Pager} name="organizations" shown=${organizations.length} offset=${offset} limit=${LIMIT} hasMore=${hasMore} />`}
  <//>`
}

/** @typedef {{ id: string, occurredAt: string, actorId: string, action: string, outcome: string, ipAddress: string | null }} AuditEvent */

/** @type {readonly import('../../controls.js').Column<AuditEvent>[]} */
const TRAIL = [
  { name: 'occurredAt', title: 'Time', cell: ({ occurredAt }) => html`<${Time} at=${occurredAt} />` },
  {
    name: 'action',
    title: 'Act',
    cell: ({ action, outcome }) =>
      html`<code>${action}</code>${outcome === 'failure' && html` <${Mark} tone="bad">refused<//>`}`,
  },
  { name: 'actorId', title: 'By', cell: ({ actorId }) => html`<${ShortId} of=${actorId} />` },
  { name: 'ipAddress', title: 'Address', cell: ({ ipAddress }) => html`<${Value} value=${ipAddress} />` },
]

/** The last acts on this user. @param {{ id: string }} props */
function Trail({ id }) {
  const query = { targetId: id, limit: 20 }
  const { data, failure, reload } = useLoad(
    (signal) => call(auth('/admin/list-audit-events'), { query, signal }),
    [id],
  )
  return html`<${Panel} title="Audit" actions=${html`<${Link} to="/audit" query=${{ target: id }}>All of it<//>`}>
    <${Pending} of="the trail" data=${data} failure=${failure} again=${reload} />
    ${data !== undefined && html`<${Table} label="Last acts" columns=${TRAIL} rows=${data.events} keyOf=${idOf} />`}
  <//>`
}
