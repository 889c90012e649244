import { useEffect, useState } from 'preact/hooks'
import { facts } from './api.js'
import { Failure } from './controls.js'
import { Dialog } from './dialogs.js'
import { useAct } from './hooks.js'
import { html } from './html.js'
import { addressOf, go } from './router.js'
import { signOut } from './session.js'
import { Value } from './values.js'

/** @param {{ caller: import('./session.js').Caller, screens: readonly import('./screens.js').Screen[] }} props */
export function Foot({ caller, screens }) {
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
export function ThemeSwitch() {
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

/** Keys that move through the console. They do nothing while one types. @param {{ screens: readonly import('./screens.js').Screen[] }} props */
function Shortcuts({ screens }) {
  const [isListed, setListed] = useState(false)
  useEffect(() => {
    let isGoing = false
    const press = (/** @type {KeyboardEvent} */ event) => {
      const { key, target } = event
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

/** @param {EventTarget | null} target */
const isTyping = (target) =>
  target instanceof HTMLElement && (target.matches('input, select, textarea') || target.isContentEditable)
