import { useEffect, useRef, useState } from 'preact/hooks'
import { auth, call, facts } from './api.js'
import { Failure, Field } from './controls.js'
import { useAct } from './hooks.js'
import { html } from './html.js'
import { enterByKey } from './session.js'

/** @type {Readonly<Record<string, string>>} */
const METHODS = { totp: 'Authenticator app', otp: 'Code by mail', backup_code: 'Backup code' }

/** @param {string} path @param {object} body */
const enter = (path, body) => call(auth(path), { method: 'POST', body, isEntry: true })

/**
 * Signs in by password, passkey or provider, and by a second factor where the account has one.
 * @param {{ onDone: () => void | Promise<void>, email?: string, pending?: readonly string[] | undefined }} props
 * `pending`: the methods of the second factor that a sign-in by a provider waits for.
 */
export function SignInForm({ onDone, email = '', pending }) {
  const [methods, setMethods] = useState(pending)
  if (methods !== undefined)
    return html`<${CodeForm} methods=${[...methods.filter((one) => METHODS[one]), 'backup_code']} onDone=${onDone} onBack=${() => setMethods(undefined)} />`
  return html`<${PasswordForm} email=${email} onDone=${onDone} onFactor=${setMethods} />
    <${OtherWays} onDone=${onDone} onFactor=${setMethods} />`
}

/** Older browsers cannot read the options of the service. */
export const hasPasskeys =
  typeof PublicKeyCredential === 'function' && 'parseRequestOptionsFromJSON' in PublicKeyCredential

/** @type {Readonly<Record<string, string>>} */
const PROVIDERS = { github: 'GitHub', gitlab: 'GitLab' }

/** @param {string} provider */
export const providerName = (provider) =>
  PROVIDERS[provider] ?? provider.slice(0, 1).toUpperCase() + provider.slice(1)

/** @param {{ onDone: () => void | Promise<void>, onFactor: (methods: readonly string[]) => void }} props */
function OtherWays({ onDone, onFactor }) {
  const { run, isBusy, failure } = useAct()
  const byPasskey = () =>
    run(async () => {
      const { showPasskey } = await import('./other-ways.js')
      const answer = await enter('/passkey/verify-authentication', await showPasskey({ isEntry: true }))
      if (answer.twoFactorRedirect === true) onFactor(answer.twoFactorMethods)
      else await onDone()
    })
  const byProvider = (/** @type {string} */ provider) =>
    run(async () => {
      const { visitProvider } = await import('./other-ways.js')
      await visitProvider('/sign-in/social', provider, { isEntry: true })
    })
  return html`<div class="ways">
    ${hasPasskeys && html`<button type="button" disabled=${isBusy} onClick=${byPasskey}>Use a passkey</button>`}
    ${facts.providers.map(
      (provider) =>
        html`<button type="button" disabled=${isBusy} onClick=${() => byProvider(provider)}>Continue with ${providerName(provider)}</button>`,
    )}
    <${Failure} of=${failure} />
  </div>`
}

/** @param {{ email: string, onDone: () => void | Promise<void>, onFactor: (methods: readonly string[]) => void }} props */
function PasswordForm({ email, onDone, onFactor }) {
  const [name, setName] = useState(email)
  const [password, setPassword] = useState('')
  const form = useFocus()
  const { run, isBusy, failure } = useAct()
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    return run(async () => {
      const answer = name.includes('@')
        ? await enter('/sign-in/email', { email: name, password })
        : await enter('/sign-in/username', { username: name, password })
      if (answer.twoFactorRedirect === true) onFactor(answer.twoFactorMethods)
      else await onDone()
    })
  }
  return html`<form ref=${form} onSubmit=${submit}>
    <${Field} label="Email or username" name="username" autocomplete="username" required autofocus=${email === ''}
      value=${name} onInput=${take(setName)} />
    <${Field} label="Password" name="password" type="password" autocomplete="current-password" required autofocus=${email !== ''}
      value=${password} onInput=${take(setPassword)} />
    <${Failure} of=${failure} />
    <button class="primary" disabled=${isBusy}>${isBusy ? 'Signing in …' : 'Sign in'}</button>
  </form>`
}

/** @param {{ methods: readonly string[], onDone: () => void | Promise<void>, onBack: () => void }} props */
function CodeForm({ methods, onDone, onBack }) {
  const [method, setMethod] = useState(methods[0] ?? 'totp')
  const [code, setCode] = useState('')
  const [isMailed, setMailed] = useState(false)
  const { run, isBusy, failure } = useAct()
  const form = useFocus()
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    return run(async () => {
      const way = method === 'backup_code' ? 'verify-backup-code' : `verify-${method}`
      await enter(`/two-factor/${way}`, { code: code.trim() })
      await onDone()
    })
  }
  const mail = () =>
    run(async () => {
      await enter('/two-factor/send-otp', {})
      setMailed(true)
    })
  return html`<form ref=${form} onSubmit=${submit}>
    <p>This account has a second factor.</p>
    <${Field} label="Method" value=${method} onChange=${take(setMethod)}>
      ${methods.map((one) => html`<option value=${one}>${METHODS[one] ?? one}</option>`)}
    <//>
    ${method === 'otp' && html`<p><button type="button" disabled=${isBusy} onClick=${mail}>${isMailed ? 'Mail another code' : 'Mail me a code'}</button></p>`}
    <${Field} label="Code" name="code" autocomplete="one-time-code" inputmode=${method === 'backup_code' ? 'text' : 'numeric'} required autofocus
      value=${code} onInput=${take(setCode)} />
    <${Failure} of=${failure} />
    <div class="row"><button class="primary" disabled=${isBusy}>Sign in</button><button type="button" onClick=${onBack}>Back</button></div>
  </form>`
}

/** Acts by a pasted key. */
export function KeyForm() {
  const [key, setKey] = useState('')
  const [client, setClient] = useState('default')
  const { run, isBusy, failure } = useAct()
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    return run(() => enterByKey(key.trim(), client.trim()))
  }
  return html`<form onSubmit=${submit}>
    <${Field} label="Key" type="password" autocomplete="off" required value=${key} onInput=${take(setKey)}
      hint="The admin key, or one of a client. It stays in this page’s memory and is forgotten with it." />
    ${key.startsWith('svc_') && html`<${Field} label="Client" autocomplete="off" required value=${client} onInput=${take(setClient)} />`}
    <${Failure} of=${failure} />
    <button disabled=${isBusy}>Use this key</button>
  </form>`
}

/** A form whose field with `autofocus` is focused when it appears. */
export function useFocus() {
  const form = useRef(/** @type {HTMLFormElement | null} */ (null))
  useEffect(() => {
    const field = form.current?.querySelector('[autofocus]')
    if (field instanceof HTMLElement) field.focus()
  }, [])
  return form
}

/** @param {(value: string) => void} set */
export const take = (set) => (/** @type {{ currentTarget: { value: string } }} */ event) =>
  set(event.currentTarget.value)
