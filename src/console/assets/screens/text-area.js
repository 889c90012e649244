import { useId } from 'preact/hooks'
import { html } from '../html.js'

/** A field of several lines. @param {{ label: string, hint?: unknown } & Record<string, unknown>} props */
export function TextArea({ label, hint, ...area }) {
  const id = useId()
  const described = hint === undefined ? {} : { 'aria-describedby': `${id}-hint` }
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <textarea id=${id} spellcheck=${false} autocomplete="off" ...${described} ...${area}></textarea>
    ${hint !== undefined && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
  </div>`
}
