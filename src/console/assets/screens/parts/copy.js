import { useState } from 'preact/hooks'
import { html } from '../../html.js'

/** @param {{ text: string, label?: string, class?: string }} props */
export function Copy({ text, label = 'Copy', class: name }) {
  const [said, setSaid] = useState('')
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setSaid('Copied')
    } catch {
      // There is no clipboard without https, or it was refused.
      setSaid('Select the text and copy it by keyboard')
    }
  }
  return html`<button type="button" class=${name} onClick=${copy}>${label}</button> <span role="status" class="soft">${said}</span>`
}
