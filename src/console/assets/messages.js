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

export function Messages() {
  const all = useStore(messages)
  return html`<div class="messages" role="status">${all.map(
    (message) =>
      html`<p key=${message.id}><${Value} value=${message.text} /><button type="button" class="plain" onClick=${() => drop(message)}>Dismiss</button></p>`,
  )}</div>`
}
