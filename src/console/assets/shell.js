import { useEffect, useState } from 'preact/hooks'
import { auth, call, facts, otherUser } from './api.js'
import { Brand, Failure, Link, Loading, Title } from './controls.js'
import { Questions } from './dialogs.js'
import { Foot, ThemeSwitch } from './foot.js'
import { useAct, useLoad, useStore } from './hooks.js'
import { html } from './html.js'
import { Messages } from './messages.js'
import { addressOf, place } from './router.js'
import { SCREENS, screenAt } from './screens.js'
import { loadSession, may, session } from './session.js'
import { KeyForm, SignInForm } from './sign-in.js'
import { Value } from './values.js'

export function Shell() {
  const state = useStore(session)
  const isFirst = useStore(place).path === '/first-admin'
  return html`
    ${
      isFirst
        ? html`<${FirstAdmin} />`
        : state.kind === 'unknown'
          ? html`<main class="door"><${Loading} of="the console" /></main>`
          : state.kind === 'out'
            ? html`<${Door} failure=${state.failure} />`
            : html`<${Inside} caller=${state.caller} />`
    }
    <${Questions} />
    <${Messages} />
  `
}

/** Loaded by the few who need it. */
function FirstAdmin() {
  const { data, failure } = useLoad(() => import('./screens/first-admin.js'), [])
  if (data === undefined)
    return html`<main class="door">${failure === undefined ? html`<${Loading} of="the page" />` : html`<${Failure} of=${failure} />`}</main>`
  return html`<${data.FirstAdminPage} />`
}

/** @param {{ failure: unknown }} props */
function Door({ failure }) {
  useEffect(() => {
    document.title = 'Sign in · Gatehouse'
  }, [])
  return html`<main class="door">
    <${Brand} />
    <h1>Sign in</h1>
    ${failure !== undefined && html`<${Failure} of=${failure} /><${LeaveButton} />`}
    <${SignInForm} onDone=${loadSession} />
    <details><summary>Use a key instead</summary><${KeyForm} /></details>
    <details>
      <summary>A new installation</summary>
      <p>An administrator is made on the machine of the service, in its folder:</p>
      <pre><code>npx gatehouse users create --role admin --name NAME --email ADDRESS</code></pre>
      <p>A first start with <code>npm start</code> on a terminal prints a link that does the same.</p>
    </details>
    <footer><${ThemeSwitch} /></footer>
  </main>`
}

/** For a session that signs in and may nothing else, until its role says more or its factor is shown. */
function LeaveButton() {
  const { run, isBusy } = useAct()
  const leave = () =>
    run(() => call(auth('/sign-out'), { method: 'POST', body: {}, isEntry: true }).then(loadSession))
  return html`<p><button type="button" disabled=${isBusy} onClick=${leave}>Sign out of this session</button></p>`
}

/** @param {{ caller: import('./session.js').Caller }} props */
function Inside({ caller }) {
  const { path, query } = useStore(place)
  const [isOpen, setOpen] = useState(false)
  const screens = SCREENS.filter(({ needs }) => may(caller, needs))
  const found = screenAt(path)
  useEffect(() => setOpen(false), [path])
  return html`<div class="inside">
    <a class="skip" href="#content" onClick=${skip}>Skip to content</a>
    <header class="side">
      <div class="top"><${Brand} />
        <button type="button" class="menu" aria-expanded=${isOpen} aria-controls="navigation"
          onClick=${() => setOpen(!isOpen)}>Menu</button></div>
      <div id="navigation" class=${isOpen ? 'open' : ''}>
        <nav aria-label="Screens"><ul>${screens.map(
          (screen) =>
            html`<li><a href=${addressOf(screen.path)} aria-current=${found?.screen === screen ? 'page' : undefined}>${screen.title}</a></li>`,
        )}</ul></nav>
        ${
          (facts.docs || facts.mail) &&
          html`<nav aria-label="Other pages"><ul>
          ${facts.docs && html`<li><a href="/docs" target="_blank" rel="noopener">API reference</a></li>`}
          ${facts.mail && html`<li><a href="/dev/mail" target="_blank" rel="noopener">Mail outbox</a></li>`}
        </ul></nav>`
        }
        <${Foot} caller=${caller} screens=${screens} />
      </div>
    </header>
    <main id="content" tabindex="-1">
      <${OtherUser} />
      ${
        found === undefined || !may(caller, found.screen.needs)
          ? html`<${Absent} />`
          : html`<${Lazy} key=${found.screen.path} screen=${found.screen} caller=${caller} rest=${found.rest} query=${query} />`
      }
    </main>
  </div>`
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault()
  document.getElementById('content')?.focus()
}

/** @param {{ screen: import('./screens.js').Screen, caller: import('./session.js').Caller, rest: string, query: import('./router.js').Query }} props */
function Lazy({ screen, ...props }) {
  const { data, failure } = useLoad(screen.load, [screen])
  if (data !== undefined) return html`<${data.View} ...${props} />`
  // A module that was not found is remembered by the browser, so the page has to be loaded again.
  if (failure !== undefined) {
    const says = `${screen.title} could not be loaded. The service may have been updated: load the page again.`
    return html`<${Failure} of=${says} again=${() => location.reload()} />`
  }
  return html`<${Loading} of=${screen.title} />`
}

function Absent() {
  return html`<${Title} title="Nothing here" /><p>There is no such screen, or your roles do not open it. <${Link} to="/">Home<//></p>`
}

function OtherUser() {
  const other = useStore(otherUser)
  if (other === undefined) return null
  return html`<div class="failure" role="alert">
    <p><strong><${Value} value=${other.name} /> has signed in in this browser.</strong></p>
    <p>Nothing is done from this page as the user before.</p>
    <button type="button" class="primary" onClick=${() => location.reload()}>
      Continue as <${Value} value=${other.name} />
    </button>
  </div>`
}
