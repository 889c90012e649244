import { useState } from 'preact/hooks'
import { auth, call, facts, openQuestion } from './api.js'
import { Dialog, Failure, Field, take, useFocus } from './controls.js'
import { useAct, useStore } from './hooks.js'
import { html } from './html.js'
import { enterByKey, loadSession, session } from './session.js'
import { Value } from './values.js'

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
const hasPasskeys =
  typeof PublicKeyCredential === 'function' && 'parseRequestOptionsFromJSON' in PublicKeyCredential

/** @type {Readonly<Record<string, string>>} */
const PROVIDERS = { github: 'GitHub', gitlab: 'GitLab' }

/** @param {string} provider */
const providerName = (provider) =>
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

/** The question that an act waits for. */
export function Questions() {
  const question = useStore(openQuestion)
  if (question === undefined) return null
  const close = () => question.answer(false)
  if (question.kind === 'sign-in') return html`<${SignInAgain} onDone=${question.answer} />`
  if (question.kind === 'proof')
    return html`<${Dialog} title="Show that it is you" onClose=${close}>
      <${ProofForm} accepts=${question.accepts} onDone=${() => question.answer(true)} onClose=${close} />
    <//>`
  return html`<${Dialog} title=${question.title} onClose=${close}>
    <p><${Value} value=${question.text} most=${1_000} /></p>
    <div class="row">
      <button type="button" class=${question.isDangerous ? 'danger' : 'primary'} onClick=${() => question.answer(true)}>
        ${question.verb}
      </button>
      <button type="button" autofocus onClick=${close}>Cancel</button>
    </div>
  <//>`
}

/** @param {{ onDone: (isDone: boolean) => void }} props */
function SignInAgain({ onDone }) {
  const state = session.get()
  const before = state.kind === 'in' ? state.caller.person : undefined
  const finish = async () => {
    await loadSession()
    const now = session.get()
    // What waits here is never done by whoever has the cookie by now.
    if (now.kind !== 'in') return onDone(false)
    // What this page shows and holds is of the user before.
    if (before !== undefined && now.caller.person?.id !== before.id) return location.assign('/console')
    onDone(true)
  }
  const leave = () => {
    onDone(false)
    session.set({ kind: 'out' })
  }
  return html`<${Dialog} title="Your session has ended" onClose=${leave}>
    <p>Sign in again, and what you were doing goes on.</p>
    <${SignInForm} email=${before?.email} onDone=${finish} />
  <//>`
}

const BY_CODE = ['totp', 'otp', 'backup_code']

/** The ways that the console can ask for, best first. @param {readonly string[]} accepts */
const waysIn = (accepts) => [
  ...(accepts.includes('password') ? ['password'] : []),
  ...(accepts.some((way) => BY_CODE.includes(way)) ? ['code'] : []),
  ...(accepts.includes('passkey') && hasPasskeys ? ['passkey'] : []),
  ...accepts.filter((way) => facts.providers.includes(way)),
]

/** @type {Readonly<Record<string, string>>} */
const LABELS = { password: 'Password', code: 'Code of the second factor', passkey: 'Passkey' }

/** @param {{ accepts: readonly string[], onDone: () => void, onClose: () => void }} props */
function ProofForm({ accepts, onDone, onClose }) {
  const ways = waysIn(accepts)
  const [way, setWay] = useState(ways[0])
  const [value, setValue] = useState('')
  const { run, isBusy, failure } = useAct()
  if (way === undefined)
    return html`<p>This account shows it by ${accepts.join(' or ')}, which the console cannot ask for. Sign out and sign in again.</p>
      <button type="button" onClick=${onClose}>Close</button>`
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    return run(async () => {
      if (facts.providers.includes(way)) return leaveFor(way)
      const body = way === 'passkey' ? await passkey() : { [way]: value }
      await call(auth('/reauthenticate'), { method: 'POST', body, asksNothing: true })
      onDone()
    })
  }
  const mail = () =>
    run(() => call(auth('/two-factor/send-otp'), { method: 'POST', body: {}, asksNothing: true }))
  const change = (/** @type {string} */ next) => {
    setWay(next)
    setValue('')
  }
  return html`<form onSubmit=${submit}>
    <p>This act asks for a proof within the last ten minutes.</p>
    ${
      ways.length > 1 &&
      html`<${Field} label="By" value=${way} onChange=${take(change)}>
      ${ways.map((one) => html`<option value=${one}>${LABELS[one] ?? providerName(one)}</option>`)}
    <//>`
    }
    ${
      way === 'password' &&
      html`<${Field} key="password" label="Password" type="password" autocomplete="current-password" required autofocus
            value=${value} onInput=${take(setValue)} />`
    }
    ${
      way === 'code' &&
      html`<${Field} key="code" label="Code" autocomplete="one-time-code" required autofocus
            value=${value} onInput=${take(setValue)} />`
    }
    ${
      way === 'code' &&
      accepts.includes('otp') &&
      html`<p><button type="button" disabled=${isBusy} onClick=${mail}>Mail me a code</button></p>`
    }
    ${
      facts.providers.includes(way) &&
      html`<p>The page of ${providerName(way)} takes the place of this one. Afterwards the act is to be done again.</p>`
    }
    <${Failure} of=${failure} />
    <div class="row"><button class="primary" disabled=${isBusy}>Go on</button><button type="button" onClick=${onClose}>Cancel</button></div>
  </form>`
}

async function passkey() {
  const { showPasskey } = await import('./other-ways.js')
  return showPasskey({ asksNothing: true })
}

/** @param {string} provider */
async function leaveFor(provider) {
  const { visitProvider } = await import('./other-ways.js')
  await visitProvider('/reauthenticate', provider, { asksNothing: true })
}
