import { useState } from 'preact/hooks'
import { ask } from '../../api.js'
import { Failure, Field, Panel, take } from '../../controls.js'
import { html } from '../../html.js'
import { Answer, Curl, curlOf, useExchange } from '../parts/exchange.js'
import { TextArea } from '../text-area.js'

/** @typedef {import('./record.js').Route} Route */

/** A body to begin with. @param {string} op @param {Route} route */
function exampleFor(op, { table_name, query, columns }) {
  const table = table_name === null && op !== 'query' ? { table_name: 'books' } : {}
  const row = Object.fromEntries((columns ?? []).map((name) => [name, null]))
  const id = [{ column: columns?.[0] ?? 'id', operator: 'eq', value: 1 }]
  /** @type {Readonly<Record<string, object>>} */
  const bodies = {
    fetch: { ...table, limit: 10 },
    subscribe: { ...table },
    insert: { ...table, insert_body: row },
    update: { ...table, set: row, conditions: id },
    delete: { ...table, conditions: id },
    query: { params: [...new Set(query?.match(/\$\d+/g) ?? [])].map(() => null) },
  }
  return JSON.stringify(bodies[op] ?? {}, null, 1)
}

/** Operations that change nothing. */
const READS = ['fetch', 'subscribe']

/**
 * Calls the route as a stranger would, or with a key, and never as the person. The key is in the memory of this form only.
 * @param {{ of: Route }} props
 */
export function Trial({ of: route }) {
  const [op, setOp] = useState(route.allowed_ops[0] ?? 'fetch')
  const [text, setText] = useState(() => exampleFor(op, route))
  const [key, setKey] = useState('')
  const { answer, isBusy, failure, send, stop } = useExchange()
  const choose = (/** @type {string} */ next) => {
    setOp(next)
    setText(exampleFor(next, route))
  }
  const address = `/public/${route.route_key}/${op}`
  const headers = { 'content-type': 'application/json' }
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault()
    const isRead = READS.includes(op)
    const question = {
      title: `Run ${op} for real?`,
      text: `It is sent to ${address} now, and can change rows of ${route.client_name}.`,
      verb: 'Send it',
    }
    if (!isRead && !(await ask({ kind: 'consent', ...question }))) return
    const as =
      key === '' ? /** @type {const} */ ({ by: 'nobody' }) : /** @type {const} */ ({ by: 'key', key })
    await send(address, { method: 'POST', headers, text, as })
  }
  const credential = route.requires_key || key !== '' ? 'apikey: $KEY' : undefined
  return html`<${Panel} title="Try it" note="as a caller, not as you">
    <form class="inner" onSubmit=${submit}>
      <${Field} label="Operation" value=${op} onChange=${take(choose)}>
        ${route.allowed_ops.map((one) => html`<option value=${one}>${one}</option>`)}
      <//>
      <${TextArea} label="Body" rows="5" value=${text} onInput=${take(setText)} />
      <${Field} label="Key" type="password" autocomplete="off" value=${key} onInput=${take((value) => setKey(value.trim()))}
        hint=${route.requires_key ? 'The route asks for one. It is forgotten with this form.' : 'The route asks for none.'} />
      <div class="row"><button class="primary" disabled=${isBusy}>Try</button>${isBusy && html`<button type="button" onClick=${stop}>Stop</button>`}</div>
      <${Failure} of=${failure} />
      <${Curl} text=${curlOf({ method: 'POST', address, headers, text, credential })} />
      <${Answer} of=${answer} />
    </form>
  <//>`
}
