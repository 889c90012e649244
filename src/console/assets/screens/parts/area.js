import { useId } from 'preact/hooks'
import { html } from '../../html.js'

/** A field of several lines. @param {{ label: string, hint?: string } & Record<string, unknown>} props */
export function Area({ label, hint, ...input }) {
  const id = useId()
  const described = hint === undefined ? {} : { 'aria-describedby': `${id}-hint` }
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <textarea id=${id} spellcheck="false" ...${described} ...${input} />
    ${hint !== undefined && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
  </div>`
}
