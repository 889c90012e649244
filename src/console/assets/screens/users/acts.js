import { useState } from 'preact/hooks'
import { ask, auth, call } from '../../api.js'
import { ActForm, Check, Failure, Field, say, take } from '../../controls.js'
import { useAct } from '../../hooks.js'
import { html } from '../../html.js'
import { addressOf, go } from '../../router.js'
import { may } from '../../session.js'

/** @typedef {{ user: import('./user.js').FullUser, onDone: (done: string) => void, onClose: () => void }} FormProps */

/** @param {string} path @param {object} body */
const post = (path, body) => call(auth(path), { method: 'POST', body })

/**
 * The acts on a user that the caller's roles allow.
 * @param {{ user: import('./user.js').FullUser, caller: import('../../session.js').Caller, isSelf: boolean, reload: () => void }} props
 */
export function Acts({ user, caller, isSelf, reload }) {
  const [open, setOpen] = useState(/** @type {string | undefined} */ (undefined))
  const { run, isBusy, failure } = useAct()
  const close = () => setOpen(undefined)
  const finish = (/** @type {string} */ done) => {
    close()
    say(done)
    reload()
  }
  const unban = () =>
    run(async () => {
      await post('/admin/unban-user', { userId: user.id })
      finish(`${user.name} may sign in again`)
    })
  const remove = async () => {
    const text = `${user.email} and everything that belongs to the account are deleted. This cannot be undone.`
    if (
      !(await ask({
        kind: 'consent',
        title: `Delete ${user.name}?`,
        text,
        verb: 'Delete the user',
        isDangerous: true,
      }))
    )
      return
    await run(async () => {
      await post('/admin/remove-user', { userId: user.id })
      say(`${user.email} was deleted`)
      go(addressOf('/users'), { replaces: true })
    })
  }
  const button = (
    /** @type {string} */ permission,
    /** @type {string} */ label,
    /** @type {() => unknown} */ onClick,
    isDanger = false,
  ) =>
    may(caller, [permission]) &&
    html`<button type="button" class=${isDanger ? 'danger' : ''} disabled=${isBusy} onClick=${onClick}>${label}</button>`
  return html`<div class="row acts">
      ${button('user:set-role', 'Change role', () => setOpen('role'))}
      ${!user.isAnonymous && button('user:set-password', 'Set password', () => setOpen('password'))}
      ${!isSelf && button('user:impersonate', 'Act as this user', () => setOpen('impersonate'))}
      ${!isSelf && (user.banned ? button('user:ban', 'Lift the ban', unban) : button('user:ban', 'Ban', () => setOpen('ban'), true))}
      ${!isSelf && button('user:delete', 'Delete', remove, true)}
    </div>
    <${Failure} of=${failure} />
    ${open === 'role' && html`<${RoleForm} user=${user} onDone=${finish} onClose=${close} />`}
    ${open === 'password' && html`<${NewPasswordForm} user=${user} onDone=${finish} onClose=${close} />`}
    ${open === 'ban' && html`<${BanForm} user=${user} onDone=${finish} onClose=${close} />`}
    ${open === 'impersonate' && html`<${ImpersonateForm} user=${user} onDone=${finish} onClose=${close} />`}`
}

/** @param {FormProps} props */
function RoleForm({ user, onDone, onClose }) {
  const [role, setRole] = useState(user.role)
  const work = async () => {
    await post('/admin/set-role', { userId: user.id, role })
    onDone(`${user.name} has the role ${role}`)
  }
  return html`<${ActForm} title=${`Role of ${user.name}`} verb="Change role" onClose=${onClose} work=${work}>
    <${Field} label="Role" required autofocus autocomplete="off" value=${role} onInput=${take(setRole)}
      hint="user, admin, or a role of auth.admin.roles; several are joined by commas" />
  <//>`
}

/** @param {FormProps} props */
function NewPasswordForm({ user, onDone, onClose }) {
  const [newPassword, setPassword] = useState('')
  const [mustChange, setMustChange] = useState(true)
  const work = async () => {
    await post('/admin/set-user-password', { userId: user.id, newPassword, mustChange })
    onDone(`${user.name} has a new password`)
  }
  return html`<${ActForm} title=${`Password of ${user.name}`} verb="Set password" onClose=${onClose} work=${work}>
    <p>All sessions of the user end.</p>
    <${Field} label="New password" type="password" required autofocus autocomplete="new-password" value=${newPassword} onInput=${take(setPassword)} />
    <${Check} label="The next sign-in mails a link to choose another" checked=${mustChange} onChange=${() => setMustChange(!mustChange)} />
  <//>`
}

/** In seconds. @type {readonly (readonly [string, string])[]} */
const BANS = [
  ['', 'Until it is lifted'],
  ['3600', 'An hour'],
  ['86400', 'A day'],
  ['604800', 'A week'],
  ['2592000', '30 days'],
]

/** @param {FormProps} props */
function BanForm({ user, onDone, onClose }) {
  const [reason, setReason] = useState('')
  const [seconds, setSeconds] = useState('')
  const work = async () => {
    const body = {
      ...(reason !== '' && { banReason: reason }),
      ...(seconds !== '' && { banExpiresIn: Number(seconds) }),
    }
    await post('/admin/ban-user', { userId: user.id, ...body })
    onDone(`${user.name} is banned`)
  }
  return html`<${ActForm} title=${`Ban ${user.name}`} verb="Ban" isDangerous onClose=${onClose} work=${work}>
    <p>All sessions of the user end at once.</p>
    <${Field} label="Reason" autofocus autocomplete="off" maxlength="1024" value=${reason} onInput=${take(setReason)} />
    <${Field} label="For" value=${seconds} onChange=${take(setSeconds)}>
      ${BANS.map(([value, label]) => html`<option value=${value}>${label}</option>`)}
    <//>
  <//>`
}

/** The address of the app, for the next one. */
let lastApp = ''

/**
 * The app gets a code in the fragment of its address, which goes to no server. It is valid once, for a minute, and the console's own session stays.
 * @param {FormProps} props
 */
function ImpersonateForm({ user, onDone, onClose }) {
  const [app, setApp] = useState(lastApp)
  const work = async () => {
    const url = URL.parse(app)
    if (url === null || !/^https?:$/.test(url.protocol))
      throw new Error('The address of the app begins with https:// or http://.')
    lastApp = app
    const { code } = await post('/admin/impersonate-user', { userId: user.id, handoff: true })
    url.hash = `handoff=${code}`
    window.open(url.href, '_blank', 'noopener')
    onDone(`The app may act as ${user.name} for an hour`)
  }
  return html`<${ActForm} title=${`Act as ${user.name}`} verb="Open the app" onClose=${onClose} work=${work}>
    <p>The app opens with a one-time code in the fragment of its address (<code>#handoff=…</code>), and sends it to <code>POST ${auth('/admin/exchange-handoff')}</code>. The audit trail shows both of you.</p>
    <${Field} label="Address of the app" type="url" required autofocus placeholder="https://app.example.com" value=${app} onInput=${take(setApp)} />
  <//>`
}
