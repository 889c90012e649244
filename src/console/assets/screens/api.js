import { useState } from 'preact/hooks'
import { facts } from '../api.js'
import { Pending, Title, take } from '../controls.js'
import { useLoad } from '../hooks.js'
import { html } from '../html.js'
import { addressOf } from '../router.js'
import { countOf } from '../values.js'
import { loadDocument } from './api/document.js'
import { OperationView, Overview } from './api/operation.js'

/** @typedef {import('./api/document.js').ApiDocument} ApiDocument @typedef {import('./api/document.js').Operation} Operation */

/** The reference, from the service's own document. The address has the operation, and nothing of its request. @param {import('../router.js').ViewProps} props */
export function View({ caller, rest }) {
  if (!facts.docs)
    return html`<${Title} title="API" /><p>The reference is off: <code>docs.enabled</code> turns it on.</p>`
  return html`<${Reference} caller=${caller} id=${rest} />`
}

/** @param {{ caller: import('../session.js').Caller, id: string }} props */
function Reference({ caller, id }) {
  const { data, failure, reload } = useLoad(loadDocument, [])
  if (data === undefined)
    return html`<${Title} title="API" /><${Pending} of="the reference" failure=${failure} again=${reload} />`
  const operation = data.operations.find((one) => one.id === id)
  return html`<div class="split">
    <${Operations} document=${data} shown=${operation} />
    ${
      operation !== undefined
        ? html`<${OperationView} key=${operation.id} document=${data} operation=${operation} caller=${caller} />`
        : id === ''
          ? html`<${Overview} document=${data} />`
          : html`<div><${Title} title="API" /><p>There is no such operation.</p></div>`
    }
  </div>`
}

/** @param {{ document: ApiDocument, shown: Operation | undefined }} props */
function Operations({ document, shown }) {
  const [text, setText] = useState('')
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  const found = document.operations.filter((one) => {
    const whole = `${one.id} ${one.method} ${one.path} ${one.summary} ${one.tag}`.toLowerCase()
    return words.every((word) => whole.includes(word))
  })
  const groups = document.tags
    .map((tag) => ({ ...tag, operations: found.filter((one) => one.tag === tag.name) }))
    .filter(({ operations }) => operations.length > 0)
  return html`<nav class="operations" aria-label="Operations">
    <input type="search" aria-label="Search operations" placeholder="Search operations" value=${text} onInput=${take(setText)} />
    <p class="fine" role="status">${words.length > 0 && `${countOf(found.length, 'operation')} found`}</p>
    <div class="groups">${groups.map(
      ({
        name,
        description,
        operations,
      }) => html`<details key=${name} open=${words.length > 0 || operations.includes(/** @type {Operation} */ (shown))}>
        <summary title=${description}>${name}</summary>
        <ul>${operations.map(
          ({
            id,
            method,
            summary,
          }) => html`<li><a href=${addressOf(`/api/${id}`)} aria-current=${id === shown?.id ? 'page' : undefined}>
            <span>${summary}</span><code class="soft">${method}</code></a></li>`,
        )}</ul>
      </details>`,
    )}</div>
  </nav>`
}
