import { render } from 'preact'
import { createStore, useStore } from './hooks.js'
import { html } from './html.js'
import { Value } from './values.js'

/** @typedef {{ id: number, text: string }} Message */

const messages = createStore(/** @type {readonly Message[]} */ ([]))
let last = 0

/** Tells that an act has succeeded. It goes by itself. @param {string} text */
export function say(text) {
  const message = { id: ++last, text }
  messages.set([...messages.get(), message])
  setTimeout(() => drop(message), 6_000)
}

/** @param {Message} message */
const drop = (message) => messages.set(messages.get().filter((one) => one !== message))

function Messages() {
  return useStore(messages).map(
    (message) =>
      html`<p key=${message.id}><${Value} value=${message.text} /><button type="button" class="plain" onClick=${() => drop(message)}>Dismiss</button></p>`,
  )
}

// Loaded with the first screen that acts. A screen reader follows only what is there before it changes.
const region = document.createElement('div')
region.className = 'messages'
region.setAttribute('role', 'status')
document.body.append(region)
render(html`<${Messages} />`, region)
