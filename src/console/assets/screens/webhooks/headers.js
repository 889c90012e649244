import { take } from '../../controls.js'
import { html } from '../../html.js'
import { Value } from '../../values.js'

/** @typedef {{ name: string, value: string }} Header */

/**
 * Headers of each request. Stored values are not shown, so they are kept as they are or replaced as a whole. `rows` is undefined while they are kept.
 * @param {{ stored: readonly string[], rows: readonly Header[] | undefined, isWrong: boolean, onChange: (rows: readonly Header[] | undefined) => void }} props
 */
export function Headers({ stored, rows, isWrong, onChange }) {
  if (rows === undefined)
    return html`<fieldset><legend>Headers</legend>
      <p>${stored.map((name) => html`<span class="detail"><code><${Value} value=${name} />: ***</code></span> `)}</p>
      <button type="button" aria-invalid=${isWrong} onClick=${() => onChange(stored.map((name) => ({ name, value: '' })))}>Replace the headers</button>
      <p class="hint">Their values are not shown. They are replaced together.</p>
    </fieldset>`
  const change = (/** @type {number} */ at, /** @type {Partial<Header>} */ to) =>
    onChange(rows.map((row, index) => (index === at ? { ...row, ...to } : row)))
  return html`<fieldset><legend>Headers</legend>
    ${rows.map(
      ({ name, value }, at) => html`<div class="header-row" key=${at}>
        <input aria-label=${`Name of header ${at + 1}`} placeholder="authorization" autocomplete="off" required aria-invalid=${isWrong}
          value=${name} onInput=${take((name) => change(at, { name }))} />
        <input aria-label=${`Value of header ${at + 1}`} placeholder="Bearer …" autocomplete="off" required aria-invalid=${isWrong}
          value=${value} onInput=${take((value) => change(at, { value }))} />
        <button type="button" aria-label=${`Remove header ${at + 1}`} onClick=${() => onChange(rows.filter((_row, index) => index !== at))}>Remove</button>
      </div>`,
    )}
    <div class="row">
      <button type="button" onClick=${() => onChange([...rows, { name: '', value: '' }])}>Add a header</button>
      ${stored.length > 0 && html`<button type="button" class="plain" onClick=${() => onChange(undefined)}>Keep the stored ones</button>`}
    </div>
  </fieldset>`
}

/**
 * As the service takes them. A name that is there twice would be lost here.
 * @param {readonly Header[]} rows
 */
export function headersFrom(rows) {
  const headers = Object.fromEntries(rows.map(({ name, value }) => [name.trim(), value.trim()]))
  if (Object.keys(headers).length < rows.length) throw new Error('A header is there twice.')
  return rows.length === 0 ? null : headers
}
