import { html } from '../../html.js'
import { Copy } from './copy.js'

/** @param {{ currentTarget: HTMLInputElement }} event */
const selectAll = ({ currentTarget }) => currentTarget.select()

/**
 * A secret that the service shows once. It is in the memory of the page that shows it only.
 * @param {{ label: string, value: string }} props
 */
export const Secret = ({ label, value }) => html`<section class="secret" aria-label=${label}>
  <p><strong>${label}</strong> It is shown this once: keep it where your program reads its secrets.</p>
  <div class="row">
    <input readonly spellcheck="false" autocomplete="off" aria-label="Secret" value=${value} onFocus=${selectAll} />
    <${Copy} text=${value} class="primary" />
  </div>
</section>`
