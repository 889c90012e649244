import { Mark, Panel, Title } from '../../controls.js'
import { html } from '../../html.js'
import { countOf } from '../../values.js'
import { resolved, typeOf } from './document.js'
import { RunForm } from './run.js'
import { Prose, SchemaTree } from './schema.js'

/** @typedef {import('./document.js').ApiDocument} ApiDocument @typedef {import('./document.js').Operation} Operation */

/** @param {{ document: ApiDocument, operation: Operation, caller: import('../../session.js').Caller }} props */
export function OperationView({ document, operation, caller }) {
  const { method, path, summary, description, body } = operation
  return html`<div class="operation">
    <${Title} title=${summary} />
    <p class="call"><${Mark} tone=${method === 'GET' ? 'good' : 'warn'}>${method}<//> <code>${path}</code></p>
    <p><${Prose} text=${description} /></p>
    <div class="split wide">
      <div>
        ${operation.parameters.length > 0 && html`<${Parameters} document=${document} operation=${operation} />`}
        ${Object.entries(body ?? {}).map(
          ([type, { schema }]) =>
            html`<${Panel} title="Body" note=${type}><div class="inner"><${SchemaTree} document=${document} schema=${schema} /></div><//>`,
        )}
        <${Answers} document=${document} operation=${operation} />
      </div>
      <${Panel} title="Run it"><${RunForm} document=${document} operation=${operation} caller=${caller} /><//>
    </div>
  </div>`
}

/** @param {{ document: ApiDocument, operation: Operation }} props */
const Parameters = ({
  document,
  operation: { parameters },
}) => html`<${Panel} title="Parameters"><div class="inner">
  <ul class="schema">${parameters.map(
    ({ name, in: place, required, schema, description }) => html`<li>
      <code>${name}</code> <span class="type">${place}, ${typeOf(document, schema)}</span>${required === true && html` <span class="needed">required</span>`}
      <span class="soft"> <${Prose} text=${description} /></span></li>`,
  )}</ul>
</div><//>`

/** @param {{ document: ApiDocument, operation: Operation }} props */
const Answers = ({ document, operation: { responses } }) => html`<${Panel} title="Answers">
  <ul class="list">${Object.entries(responses).map(([status, given]) => {
    const { description, content = {} } = resolved(document, given)
    const isFailure = !/^[123]/.test(status)
    return html`<li><${Mark} tone=${isFailure ? 'bad' : 'good'}>${status}<//> <${Prose} text=${description} />
      ${Object.entries(content).map(
        ([type, { schema }]) =>
          !isFailure &&
          html`<p class="soft">${type}</p><${SchemaTree} document=${document} schema=${schema} />`,
      )}</li>`
  })}</ul>
  <p class="fine">A failure has a <code>code</code>, a <code>message</code> and, where there is one, what to do.</p>
<//>`

/** When no operation is chosen. @param {{ document: ApiDocument }} props */
export const Overview = ({ document }) => html`<div class="operation">
  <${Title} title="API" />
  <p>${countOf(document.operations.length, 'operation')} at <code>${location.origin}</code>, described by <a href="/openapi.json" target="_blank" rel="noopener"><code>/openapi.json</code></a>.</p>
  <p>Programs send an API key as <code>apikey</code>, and name the client in <code>X-Service-Client</code>. Applications send the session of their user as <code>Authorization: Bearer</code>, or its cookie.</p>
  <p>Here every operation can be run as yourself, with what your roles allow. Nothing runs before you say so.</p>
</div>`
