import { useState } from 'preact/hooks'
import { ask } from '../../api.js'
import { Failure, Field, take } from '../../controls.js'
import { html } from '../../html.js'
import { useClients } from '../client-field.js'
import { Answer, Curl, curlOf, useExchange } from '../parts/exchange.js'
import { TextArea } from '../text-area.js'
import { isRead, resolved } from './document.js'
import { bodiesOf, keyOf, namesClient, placeholderFor, requestOf, valuesOf } from './request.js'

/** @typedef {import('./document.js').ApiDocument} ApiDocument @typedef {import('./document.js').Operation} Operation @typedef {import('./document.js').Parameter} Parameter @typedef {import('../../session.js').Caller} Caller */

/** The choices of this person for the operation before. A pasted key is nowhere else, and ends with the page or the session. */
let last = noChoices(/** @type {Caller | undefined} */ (undefined))

/** @param {Caller | undefined} of */
function noChoices(of) {
  return { of, client: /** @type {string | undefined} */ (undefined), key: '', by: 'self' }
}

/** Runs the operation as the person, with a pasted key, or as nobody. @param {{ document: ApiDocument, operation: Operation, caller: Caller }} props */
export function RunForm({ document, operation, caller }) {
  if (last.of !== caller) last = noChoices(caller)
  const names = useClients(caller)
  const [client, setClient] = useState(last.client ?? names[0] ?? 'default')
  const [values, setValues] = useState(() => valuesOf(document, operation, client))
  const bodies = bodiesOf(document, operation, client)
  const [text, setText] = useState(bodies[0])
  const [by, setBy] = useState(last.by)
  const [key, setKey] = useState(last.key)
  const { answer, isBusy, failure, send, stop } = useExchange()
  const set = (/** @type {Parameter} */ one) =>
    take((value) => setValues((now) => ({ ...now, [keyOf(one)]: value })))
  const place = operation.parameters.find((one) => namesClient(one) && one.required === true)
  const chooseClient = (/** @type {string} */ next) => {
    last.client = next
    setClient(next)
    if (place !== undefined) setValues({ ...values, [keyOf(place)]: next })
    // What was typed stays.
    if (text !== undefined && bodies.includes(text))
      setText(bodiesOf(document, operation, next)[bodies.indexOf(text)])
  }
  const chooseBy = (/** @type {string} */ next) => {
    last.by = next
    setBy(next)
  }
  const keepKey = (/** @type {string} */ next) => {
    last.key = next.trim()
    setKey(last.key)
  }
  const request = requestOf(operation, values, text)
  const shown =
    by === 'key' && key !== '' ? { ...request, headers: { apikey: key, ...request.headers } } : request
  const credential = shown === request && by !== 'nobody' ? placeholderFor(operation) : undefined
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault()
    const question = {
      title: `${operation.summary}: for real?`,
      text: `${request.method} ${request.address} is sent now, as ${by === 'self' ? caller.name : by === 'key' ? 'the pasted key' : 'nobody'}, and changes what it says.`,
      verb: 'Send it',
    }
    if (!isRead(operation) && !(await ask({ kind: 'consent', ...question }))) return
    await send(request.address, { ...request, as: credentialOf(by, key) })
  }
  const others = operation.parameters.filter((one) => one !== place)
  const further = others.filter(({ required }) => required !== true)
  const field = (/** @type {Parameter} */ one) =>
    html`<${ValueField} key=${keyOf(one)} document=${document} of=${one} value=${values[keyOf(one)] ?? ''} onValue=${set(one)} />`
  return html`<form class="inner" onSubmit=${submit}>
    ${
      (place !== undefined || text?.includes('"client_name"')) &&
      html`<${Field} label=${place?.name ?? 'client_name'} value=${client} onChange=${take(chooseClient)}>
        ${[...new Set([...names, client])].map((name) => html`<option value=${name}>${name}</option>`)}
      <//>`
    }
    ${others.filter(({ required }) => required === true).map(field)}
    ${
      further.length > 0 &&
      html`<details><summary>Further parameters (${further.length})</summary>${further.map(field)}</details>`
    }
    ${
      bodies.length > 1 &&
      html`<${Field} label="Example" value=${String(bodies.indexOf(text ?? ''))} onChange=${take((index) => setText(bodies[Number(index)] ?? text))}>
        ${!bodies.includes(text ?? '') && html`<option value="-1">as typed</option>`}
        ${bodies.map((_, index) => html`<option value=${String(index)}>${index + 1}</option>`)}
      <//>`
    }
    ${text !== undefined && html`<${TextArea} label="Body" rows=${Math.min(16, Math.max(4, text.split('\n').length))} value=${text} onInput=${take(setText)} />`}
    <${Field} label="As" value=${by} onChange=${take(chooseBy)}>
      <option value="self">${caller.person === undefined ? 'the key of this page' : 'yourself, by your session'}</option>
      <option value="key">a pasted key</option>
      <option value="nobody">nobody</option>
    <//>
    ${
      by === 'key' &&
      html`<${Field} label="Key" type="password" autocomplete="off" required value=${key} hint="It stays in this page’s memory and is forgotten with it."
        onInput=${take(keepKey)} />`
    }
    <div class="row"><button class="primary" disabled=${isBusy}>Run</button>${isBusy && html`<button type="button" onClick=${stop}>Stop</button>`}${!isRead(operation) && html`<span class="soft">asks first</span>`}</div>
    <${Failure} of=${failure} />
    <${Answer} of=${answer} />
    <${Curl} text=${curlOf({ ...shown, credential })} />
  </form>`
}

/** @param {string} by @param {string} key @returns {import('../../api.js').Credential | undefined} */
function credentialOf(by, key) {
  if (by === 'key') return { by: 'key', key }
  return by === 'nobody' ? { by: 'nobody' } : undefined
}

/** @param {{ document: ApiDocument, of: Parameter, value: string, onValue: ReturnType<typeof take> }} props */
function ValueField({ document, of: { name, schema, required = false }, value, onValue }) {
  const { enum: words, type } = resolved(document, schema)
  const options = words ?? (type === 'boolean' ? [true, false] : undefined)
  if (options === undefined)
    return html`<${Field} label=${name} autocomplete="off" required=${required} value=${value} onInput=${onValue} />`
  return html`<${Field} label=${name} value=${value} onChange=${onValue}>
    ${!required && html`<option value="">–</option>`}
    ${options.map((/** @type {unknown} */ one) => html`<option value=${String(one)}>${String(one)}</option>`)}
  <//>`
}
