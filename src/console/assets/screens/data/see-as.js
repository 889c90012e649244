import { useState } from 'preact/hooks'
import { auth, call } from '../../api.js'
import { Failure, Field, Panel, Table, take } from '../../controls.js'
import { useAct, useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { may } from '../../session.js'
import { countOf, isNumeric, Value } from '../../values.js'
import { named } from './described.js'

const LIMIT = 50
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * @typedef {Readonly<Record<string, unknown>>} Row
 * @typedef {{ data: readonly Row[], database_role: string, claims: object, refused: { code: string, message: string } | null, offset: number }} Seen
 */

/** What policies show a user or a visitor of this table. The trail has each look. @param {import('./described.js').TableViewProps} props */
export function SeeAs({ at, caller }) {
  const [subject, setSubject] = useState('user')
  const [user, setUser] = useState('')
  const [organization, setOrganization] = useState('')
  const [seen, setSeen] = useState(/** @type {Seen | undefined} */ (undefined))
  const { run, isBusy, failure } = useAct()
  const look = (/** @type {number} */ offset) =>
    run(async () => {
      setSeen(undefined)
      const { client } = at
      const who =
        subject === 'user'
          ? {
              user_id: await idOf(user.trim()),
              ...(organization !== '' && { organization_id: organization.trim() }),
            }
          : { role: subject }
      const body = { ...named(at), ...who, limit: LIMIT, offset }
      setSeen({ ...(await call('/see-as', { method: 'POST', client, body })), offset })
    })
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    return look(0)
  }
  const byEmail = may(caller, ['user:list'])
  return html`<${Panel} title="See as" note="read-only, and in the audit trail">
    <form class="see-as" onSubmit=${submit}>
      <${Field} label="Who" value=${subject} onChange=${take(setSubject)}>
        <option value="user">A user</option>
        <option value="anonymous">A visitor without a session</option>
        <option value="signed_in">Anyone who is signed in</option>
      <//>
      ${
        subject === 'user' &&
        html`<${Field} label=${byEmail ? 'Id or email' : 'Id of the user'} required autocomplete="off" spellcheck=${false} value=${user} onInput=${take(setUser)} />
        <${Organization} user=${user.trim()} caller=${caller} value=${organization} set=${setOrganization} />`
      }
      <p><button class="primary" disabled=${isBusy}>See the rows</button></p>
    </form>
    <${Failure} of=${failure} />
    ${seen !== undefined && html`<${Rows} seen=${seen} look=${look} isBusy=${isBusy} />`}
  <//>`
}

/** @param {string} user */
async function idOf(user) {
  if (!user.includes('@')) return user
  const query = { searchValue: user, searchField: 'email', limit: 20 }
  const { users } = await call(auth('/admin/list-users'), { query })
  const found = users.find((/** @type {{ email: string }} */ { email }) => email === user.toLowerCase())
  if (found === undefined) throw new Error('No user has this address.')
  return found.id
}

/** @param {{ user: string, caller: import('../../session.js').Caller, value: string, set: (next: string) => void }} props */
function Organization({ user, caller, value, set }) {
  const mayList = may(caller, ['organization:list']) && UUID.test(user)
  const { data } = useLoad(
    async (signal) =>
      mayList ? call(auth('/admin/list-user-organizations'), { query: { userId: user }, signal }) : undefined,
    [user, mayList],
  )
  /** @type {readonly { id: string, name: string }[] | undefined} */
  const all = data?.organizations
  if (all === undefined)
    return html`<${Field} label="Active organization" autocomplete="off" placeholder="none, or its id" value=${value} onInput=${take(set)} />`
  return html`<${Field} label="Active organization" value=${value} onChange=${take(set)}>
    <option value="">none</option>${all.map(({ id, name }) => html`<option value=${id}>${name}</option>`)}
  <//>`
}

/** @param {{ seen: Seen, look: (offset: number) => unknown, isBusy: boolean }} props */
function Rows({ seen: { data, database_role: role, claims, refused, offset }, look, isBusy }) {
  const names = [...new Set(data.flatMap((row) => Object.keys(row)))]
  const columns = names.map((name) => ({
    name,
    title: html`<${Value} value=${name} most=${63} />`,
    isNumber: isNumeric(data[0]?.[name]),
    cell: (/** @type {Row} */ row) => html`<${Value} value=${row[name]} most=${160} />`,
  }))
  return html`<div aria-live="polite">
    <p class="padded">${
      refused === null
        ? html`<strong>${countOf(data.length, 'row')}${data.length === LIMIT && ', and perhaps more'}</strong> as <code><${Value} value=${role} /></code>`
        : html`<strong>Refused:</strong> <${Value} value=${refused.message} /> <code>${refused.code}</code>`
    }</p>
    ${data.length > 0 && html`<${Table} label="Rows that are seen" columns=${columns} rows=${data} keyOf=${(/** @type {Row} */ _row, /** @type {number} */ index) => String(offset + index)} />`}
    <p class="row padded">
      ${offset > 0 && html`<button type="button" disabled=${isBusy} onClick=${() => look(offset - LIMIT)}>Previous</button>`}
      ${data.length === LIMIT && html`<button type="button" disabled=${isBusy} onClick=${() => look(offset + LIMIT)}>Next</button>`}
    </p>
    <details class="padded"><summary>Claims that policies find</summary><pre><${Value} value=${JSON.stringify(claims, null, 2)} most=${4_000} /></pre></details>
  </div>`
}
