import { useId, useState } from 'preact/hooks'
import { Panel } from '../controls.js'
import { html } from '../html.js'

/** A secret on its way from the form that made it to the view that shows it, once. @type {{ id: string, secret: string } | undefined} */
let issued

/** @param {{ id: string, secret: string }} made */
export function hand({ id, secret }) {
  issued = { id, secret }
}

/** @param {string} id @returns {string | undefined} */
export function takeIssued(id) {
  const secret = issued?.id === id ? issued.secret : undefined
  issued = undefined
  return secret
}

/** @param {{ secret: string, onClose: () => void }} props */
export function Secret({ secret, onClose }) {
  const id = useId()
  const [copied, setCopied] = useState('')
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(secret)
      setCopied('Copied')
    } catch {
      // Browsers copy for pages of https and of this machine only.
      setCopied('Mark the text and copy it: this browser does not let the page do it')
    }
  }
  const mark = (/** @type {{ currentTarget: HTMLInputElement }} */ { currentTarget }) =>
    currentTarget.select()
  return html`<${Panel} title="Secret" note="shown once" actions=${html`<button type="button" onClick=${onClose}>I have it</button>`}>
    <div class="issued-secret">
      <label for=${id} class="hidden">Secret</label>
      <input id=${id} readonly autocomplete="off" value=${secret} onFocus=${mark} />
      <button type="button" class="primary" onClick=${copy}>Copy</button>
      <span class="soft" role="status">${copied}</span>
    </div>
  <//>`
}
