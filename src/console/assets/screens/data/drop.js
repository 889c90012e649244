import { useState } from 'preact/hooks'
import { ApiError, call } from '../../api.js'
import { ActForm, Check } from '../../controls.js'
import { html } from '../../html.js'
import { countOf, Value } from '../../values.js'

/** @typedef {{ type: string, schema_name: string | null, table_name: string | null, name: string }} Dependent */

/**
 * Asks before something is dropped, and names what depends on it when the database says so.
 * @param {{ title: string, text: string, verb: string, path: string, client: string, schema: string, onDone: () => void, onClose: () => void }} props
 */
export function Drop({ title, text, verb, path, client, schema, onDone, onClose }) {
  const [dependents, setDependents] = useState(/** @type {readonly Dependent[]} */ ([]))
  const [hidden, setHidden] = useState(0)
  const [cascade, setCascade] = useState(false)
  const work = async () => {
    try {
      const body = { schema_name: schema, ...(cascade && { cascade }) }
      await call(path, { method: 'DELETE', client, body })
      onDone()
    } catch (error) {
      if (error instanceof ApiError && error.code === 'object_in_use') {
        setDependents(error.details?.dependents ?? [])
        setHidden(error.details?.hidden_dependents ?? 0)
      }
      throw error
    }
  }
  return html`<${ActForm} title=${title} verb=${verb} isDangerous onClose=${onClose} work=${work}>
    <p><${Value} value=${text} most=${1_000} /> This cannot be undone.</p>
    ${
      dependents.length + hidden > 0 &&
      html`<p>These depend on it:</p>
      <ul class="dependents">${dependents.map(
        ({ type, table_name: table, name }) =>
          html`<li>${type === 'rule' ? 'view' : type} <${Value} value=${name} />${table !== null && table !== name && html` of <${Value} value=${table} />`}</li>`,
      )}${hidden > 0 && html`<li>and ${hidden} more that you may not see</li>`}</ul>
      <p><${Check} label="Drop them too" checked=${cascade} onChange=${() => setCascade(!cascade)} /></p>`
    }
  <//>`
}

/** What is lost, by the database's estimate. @param {number} rows */
export const rowsOf = (rows) => (rows <= 0 ? 'all rows' : `about ${countOf(rows, 'row')}`)
