import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ApiError, auth, call, facts, otherUser } from './api.js'
import { Brand, Dialog, Failure, Link, Loading, later, Messages, Title } from './controls.js'
import { useAct, useStore } from './hooks.js'
import { html } from './html.js'
import { addressOf, followLink, go, goWith, place } from './router.js'
import { loadSession, may, session, signOut } from './session.js'
import { KeyForm, Questions, SignInForm } from './sign-in.js'
import { Value } from './values.js'

/**
 * A part of the console. To add one: a module in screens/ that exports `View`, and a line here.
 * @param {string} path
 * @param {string} title
 * @param {string} letter g and this letter open it
 * @param {readonly string[]} needs one of these permissions shows it (session.js `may`)
 * @param {() => Promise<{ View: import('preact').FunctionComponent<import('./router.js').ViewProps> }>} load
 */
const screen = (path, title, letter, needs, load) => ({
  path,
  title,
  letter,
  needs,
  View: later(title, load),
})
/** @typedef {ReturnType<typeof screen>} Screen */

/** The outbox of development is open to all on its machine. */
const TO_MAIL = facts.mail ? [] : ['operator:settings']

/** @type {readonly Screen[]} */
const SCREENS = [
  screen('/', 'Home', 'h', [], () => import('./screens/home.js')),
  screen('/users', 'Users', 'u', ['user:list'], () => import('./screens/users.js')),
  screen(
    '/organizations',
    'Organizations',
    'o',
    ['organization:list'],
    () => import('./screens/organizations.js'),
  ),
  screen('/data', 'Data', 'd', ['gateway'], () => import('./screens/data.js')),
  screen('/sql', 'SQL', 'q', ['gateway.query', 'gateway.query.read'], () => import('./screens/sql.js')),
  screen('/api', 'API', 'i', [], () => import('./screens/api.js')),
  screen('/keys', 'Keys', 'k', ['operator:keys'], () => import('./screens/keys.js')),
  screen('/pipelines', 'Pipelines', 'p', ['pipelines.run'], () => import('./screens/pipelines.js')),
  screen('/webhooks', 'Webhooks', 'w', ['operator:webhooks'], () => import('./screens/webhooks.js')),
  screen(
    '/public-routes',
    'Public routes',
    'r',
    ['operator:routes'],
    () => import('./screens/public-routes.js'),
  ),
  screen('/backups', 'Backups', 'b', ['operator:backups'], () => import('./screens/backups.js')),
  screen('/mail', 'Mail', 'm', TO_MAIL, () => import('./screens/mail.js')),
  screen('/audit', 'Audit', 'a', ['audit:list'], () => import('./screens/audit.js')),
  screen('/settings', 'Settings', 's', ['operator:settings'], () => import('./screens/settings.js')),
]

/** The screen of a place, and the rest of its path. @param {string} path */
function screenAt(path) {
  const screen = SCREENS.find(
    (one) => one.path === path || (one.path !== '/' && path.startsWith(`${one.path}/`)),
  )
  return screen && { screen, rest: path.slice(screen.path.length).replace(/^\//, '') }
}

/** Few need it. */
const FirstAdmin = later('The page', () => import('./screens/first-admin.js'), 'FirstAdminPage')

function Shell() {
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

/** @param {{ failure: unknown }} props */
function Door({ failure }) {
  const { query } = useStore(place)
  useEffect(() => {
    document.title = 'Sign in · Gatehouse'
  }, [])
  return html`<main class="door">
    <${Brand} />
    <h1>Sign in</h1>
    ${failure !== undefined && html`<${Failure} of=${failure} /><${LeaveButton} />`}
    <${VisitFailure} />
    <${SignInForm} onDone=${finish} pending=${query.twoFactorRedirect === 'true' ? (query.methods ?? '').split(',') : undefined} />
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

/** The way back from a provider is no part of the place. */
const forgetVisit = () =>
  goWith({ error: undefined, twoFactorRedirect: undefined, methods: undefined }, { replaces: true })

const finish = async () => {
  await loadSession()
  forgetVisit()
}

/** A provider has led back without success. Anyone may have written the address, so it is a code or nothing. */
function VisitFailure() {
  const { error = '' } = useStore(place).query
  if (!/^[a-z_]{1,64}$/i.test(error)) return null
  const message = 'The visit to the provider did not succeed.'
  const hint = 'Try again, or take another way in.'
  return html`<div><${Failure} of=${new ApiError({ status: 0, code: error, message, hint })} />
    <p><button type="button" onClick=${forgetVisit}>Dismiss</button></p></div>`
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
          facts.docs &&
          html`<nav aria-label="Other pages"><ul>
          <li><a href="/docs" target="_blank" rel="noopener">Swagger UI</a></li>
        </ul></nav>`
        }
        <${Foot} caller=${caller} screens=${screens} />
      </div>
    </header>
    <main id="content" tabindex="-1">
      <${OtherUser} />
      <${VisitFailure} />
      ${
        found === undefined || !may(caller, found.screen.needs)
          ? html`<${Absent} />`
          : html`<${found.screen.View} key=${found.screen.path} caller=${caller} rest=${found.rest} query=${query} />`
      }
    </main>
  </div>`
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault()
  document.getElementById('content')?.focus()
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

/** @param {{ caller: import('./session.js').Caller, screens: readonly Screen[] }} props */
function Foot({ caller, screens }) {
  const { run, isBusy, failure } = useAct()
  return html`<div class="foot">
    <p class="person"><strong><${Value} value=${caller.name} /></strong><span class="soft"><${Value} value=${caller.detail} /></span></p>
    <button type="button" disabled=${isBusy} onClick=${() => run(signOut)}>Sign out</button>
    <${Failure} of=${failure} />
    <${ThemeSwitch} />
    <${Shortcuts} screens=${screens} />
    <p class="fine">Gatehouse ${facts.version}</p>
  </div>`
}

const NAME = 'gatehouse-theme'
const THEMES = ['system', 'light', 'dark']

/** @param {string} theme */
function apply(theme) {
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

/** Some browsers refuse to store. */
function stored() {
  try {
    const theme = localStorage.getItem(NAME) ?? ''
    return THEMES.includes(theme) ? theme : 'system'
  } catch {
    return 'system'
  }
}

apply(stored())

/** Light, dark, or as the system has it. */
function ThemeSwitch() {
  const [theme, setTheme] = useState(stored)
  const choose = (/** @type {{ currentTarget: HTMLSelectElement }} */ { currentTarget: { value } }) => {
    setTheme(value)
    apply(value)
    try {
      localStorage.setItem(NAME, value)
    } catch {
      // It lasts as long as the page.
    }
  }
  return html`<label class="theme">Theme <select value=${theme} onChange=${choose}>${THEMES.map(
    (one) => html`<option value=${one}>${one}</option>`,
  )}</select></label>`
}

/** Keys that move through the console. They do nothing while one types. @param {{ screens: readonly Screen[] }} props */
function Shortcuts({ screens }) {
  const [isListed, setListed] = useState(false)
  useEffect(() => {
    let isGoing = false
    const press = (/** @type {KeyboardEvent} */ event) => {
      const { key } = event
      // An editor is in a shadow root: the event's own target is its host.
      const [target] = event.composedPath()
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(target)) return
      if (document.querySelector('dialog[open]') !== null) return
      const wentTo = isGoing ? screens.find(({ letter }) => letter === key) : undefined
      isGoing = key === 'g'
      if (wentTo !== undefined) go(addressOf(wentTo.path))
      else if (key === '?') setListed(true)
      else if (key === '/') {
        const search = document.querySelector('input[type=search]')
        if (!(search instanceof HTMLElement)) return
        search.focus()
        event.preventDefault()
      }
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [screens])
  const close = () => setListed(false)
  return html`<button type="button" class="plain" onClick=${() => setListed(true)}>Shortcuts <kbd>?</kbd></button>${
    isListed &&
    html`<${Dialog} title="Shortcuts" onClose=${close}>
      <dl class="keys">
        ${screens.map(({ letter, title }) => html`<div><dt><kbd>g</kbd> <kbd>${letter}</kbd></dt><dd>${title}</dd></div>`)}
        <div><dt><kbd>/</kbd></dt><dd>Search</dd></div>
        <div><dt><kbd>Esc</kbd></dt><dd>Close a dialog</dd></div>
        <div><dt><kbd>?</kbd></dt><dd>This list</dd></div>
      </dl>
      <button type="button" class="primary" onClick=${close}>Close</button>
    <//>`
  }`
}

/** @param {EventTarget | undefined} target */
const isTyping = (target) =>
  target instanceof HTMLElement && (target.matches('input, select, textarea') || target.isContentEditable)

const root = document.getElementById('app')
if (root !== null) render(html`<${Shell} />`, root)
document.addEventListener('click', followLink)
loadSession()
