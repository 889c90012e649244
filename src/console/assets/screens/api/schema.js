import { useState } from 'preact/hooks'
import { html } from '../../html.js'
import { resolved, typeOf } from './document.js'

/** @typedef {import('./document.js').ApiDocument} ApiDocument @typedef {import('./document.js').Schema} Schema */

/** Text with `code` in it. @param {{ text: string | undefined }} props */
export const Prose = ({ text = '' }) =>
  text.split('`').map((part, index) => (index % 2 === 0 ? part : html`<code>${part}</code>`))

/** The members of what a schema allows, each with its own behind a click. @param {{ document: ApiDocument, schema: Schema }} props */
export function SchemaTree({ document, schema }) {
  const shapes = shapesIn(document, schema)
  return html`${shapes.map(
    ({ properties = {}, required = [] }, index) => html`${index > 0 && html`<p class="soft">or</p>`}
      <ul class="schema">${Object.entries(properties)
        .filter(([, one]) => one['x-alias-of'] === undefined)
        .map(
          ([name, one]) =>
            html`<${Member} key=${name} document=${document} name=${name} schema=${one} isRequired=${required.includes(name)} />`,
        )}</ul>`,
  )}
  ${shapes.length === 0 && html`<p><code>${typeOf(document, schema)}</code></p>`}`
}

/** The objects in it: itself, its items, or one of several. @param {ApiDocument} document @param {Schema} of @returns {readonly Schema[]} */
function shapesIn(document, of) {
  const schema = resolved(document, of)
  const several = schema.anyOf ?? schema.oneOf
  if (several !== undefined) return several.flatMap((/** @type {Schema} */ one) => shapesIn(document, one))
  if (schema.items !== undefined) return shapesIn(document, schema.items)
  return schema.properties === undefined ? [] : [schema]
}

/** @param {{ document: ApiDocument, name: string, schema: Schema, isRequired: boolean }} props */
function Member({ document, name, schema, isRequired }) {
  const [isOpen, setOpen] = useState(false)
  const { description } = resolved(document, schema)
  const hasMembers = shapesIn(document, schema).length > 0
  return html`<li>
    <code>${name}</code> <span class="type">${typeOf(document, schema)}</span>${isRequired && html` <span class="needed">required</span>`}
    <span class="soft"> <${Prose} text=${description} /></span>
    ${
      // A shape may contain itself, so members are made when they are looked at.
      hasMembers &&
      html`<details onToggle=${(/** @type {{ currentTarget: HTMLDetailsElement }} */ event) => setOpen(event.currentTarget.open)}>
        <summary>members of ${name}</summary>${isOpen && html`<${SchemaTree} document=${document} schema=${schema} />`}
      </details>`
    }
  </li>`
}
