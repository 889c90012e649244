import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, auth, call } from '../api.js'
import { Brand, Failure, Field, Link, take, useFocus } from '../controls.js'
import { useAct } from '../hooks.js'
import { html } from '../html.js'
import { addressOf, go } from '../router.js'
import { loadSession } from '../session.js'

/** The token of the link, which leaves the address, and the history, at once. */
const token = location.hash.slice(1)
history.replaceState(null, '', location.pathname)

/** @param {string} path @param {object} body */
const enter = (path, body) => call(auth(path), { method: 'POST', body, isEntry: true })

/** Makes the bearer of the link that a first start prints an administrator, and signs in. */
export function FirstAdminPage() {
  const [name, setName] = useState('')
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const form = useFocus()
  const isMade = useRef(false)
  const { run, isBusy, failure } = useAct()
  useEffect(() => {
    document.title = 'First administrator · Gatehouse'
  }, [])
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    return run(async () => {
      // A second press, when the sign-in after the first one has failed.
      if (!isMade.current) await enter('/admin/create-first-admin', { token, name, email, password })
      isMade.current = true
      await enter('/sign-in/email', { email, password })
      await loadSession()
      go(addressOf('/'), { replaces: true })
    })
  }
  return html`<main class="door">
    <${Brand} />
    <h1>First administrator</h1>
    <p>The link of a start holds once, for ten minutes, and as long as nobody else administers the service.</p>
    <form ref=${form} onSubmit=${submit}>
      <${Field} label="Name" autocomplete="name" required autofocus maxlength="100" value=${name} onInput=${take(setName)} />
      <${Field} label="Email" type="email" autocomplete="username" required value=${email} onInput=${take(setEmail)} />
      <${Field} label="Password" type="password" autocomplete="new-password" required maxlength="128" value=${password} onInput=${take(setPassword)} />
      <${Failure} of=${failure} />
      ${
        failure instanceof ApiError &&
        failure.code === 'invalid_token' &&
        html`<p>The link was used, has expired, or somebody administers the service already. If you have made an
          administrator by it, <${Link} to="/">sign in<//>. Else start the service again on a terminal: it prints
          another link while there is none.</p>`
      }
      <button class="primary" disabled=${isBusy}>Create the administrator</button>
    </form>
    <p class="fine">The command does the same: <code>npx gatehouse users create --role admin</code></p>
  </main>`
}
