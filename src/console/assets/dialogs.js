import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { auth, call, facts, openQuestion } from './api.js'
import { Failure, Field } from './controls.js'
import { useAct, useStore } from './hooks.js'
import { html } from './html.js'
import { loadSession, session } from './session.js'
import { hasPasskeys, providerName, SignInForm, take } from './sign-in.js'
import { Value } from './values.js'

/**
 * A dialog that keeps the focus. Escape closes it.
 * @param {{ title: string, onClose: () => void, children?: unknown }} props
 */
export function Dialog({ title, onClose, children }) {
  const id = useId()
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null))
  useEffect(() => {
    const before = document.activeElement
    dialog.current?.showModal()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  const cancel = (/** @type {Event} */ event) => {
    event.preventDefault()
    onClose()
  }
  return html`<dialog ref=${dialog} aria-labelledby=${id} onCancel=${cancel} onClose=${onClose}>
    <h2 id=${id}><${Value} value=${title} /></h2>
    ${children}
  </dialog>`
}

/**
 * A form in a dialog. Its failure stands in it, and what was typed stays.
 * @param {{ title: string, verb: string, onClose: () => void, work: () => Promise<unknown>, isDangerous?: boolean, children?: unknown }} props
 */
export function ActForm({ title, verb, onClose, work, isDangerous = false, children }) {
  const { run, isBusy, failure } = useAct()
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    return run(work)
  }
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form onSubmit=${submit}>
      ${children}
      <${Failure} of=${failure} />
      <div class="row">
        <button class=${isDangerous ? 'danger' : 'primary'} disabled=${isBusy}>${verb}</button>
        <button type="button" onClick=${onClose}>Cancel</button>
      </div>
    </form>
  <//>`
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
