import { useState } from 'preact/hooks'
import { ApiError, call, facts, parse } from '../../api.js'
import { Check, Failure, Field, Link, Pending, say, Title, take } from '../../controls.js'
import { useAct, useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { addressOf, go } from '../../router.js'
import { textOf, Value } from '../../values.js'
import { ClientField, useClients } from '../client-field.js'
import { hand } from '../issued-secret.js'
import { TextArea } from '../text-area.js'
import { callWebhooks, pathOf, seesUsers } from './calls.js'
import { EventPicker, eventsOf, useEvents } from './events.js'
import { Headers, headersFrom } from './headers.js'

/**
 * @typedef {import('./calls.js').Webhook} Webhook
 * @typedef {{ ofUsers: boolean, client: string, keys: readonly string[], table: string, filter: string, url: string, headers: readonly import('./headers.js').Header[] | undefined, description: string, timeout: string, isActive: boolean }} Typed
 */

/** @param {{ caller: import('./calls.js').Caller }} props */
export function NewView({ caller }) {
  return html`<p class="crumb"><${Link} to="/webhooks">Webhooks<//></p>
    <${Title} title="New webhook" />
    <${Form} caller=${caller} before=${undefined} />`
}

/** @param {{ id: string, caller: import('./calls.js').Caller }} props */
export function EditView({ id, caller }) {
  const { data, failure, reload } = useLoad((signal) => callWebhooks(caller, pathOf(id), { signal }), [id])
  const webhook = /** @type {Webhook | undefined} */ (data)
  return html`<p class="crumb"><${Link} to="/webhooks">Webhooks<//> / ${
    webhook && html`<${Link} to=${`/webhooks/${id}`}><${Value} value=${webhook.url} most=${80} /><//>`
  }</p>
    <${Title} title="Edit the webhook" />
    <${Pending} of="the webhook" data=${webhook} failure=${failure} again=${reload} />
    ${webhook && html`<${Form} caller=${caller} before=${webhook} />`}`
}

/** @param {Webhook | undefined} before @param {readonly string[]} clients @returns {Typed} */
const typedFrom = (before, clients) => ({
  ofUsers: before?.client_name === null,
  client: before?.client_name ?? clients[0] ?? 'default',
  keys: before?.route_keys ?? [],
  table: before?.table_name ?? '',
  filter: before === undefined || before.filter === null ? '' : textOf(before.filter),
  url: before?.url ?? '',
  headers: before !== undefined && Object.keys(before.headers).length > 0 ? undefined : [],
  description: before?.description ?? '',
  timeout: String(before?.timeout_ms ?? 15_000),
  isActive: before?.is_active ?? true,
})

/** The body that was typed. @param {Typed} typed @param {{ hasTable: boolean, hasRows: boolean }} takes */
function bodyFrom(
  { ofUsers, client, keys, table, filter, url, headers, description, timeout, isActive },
  { hasTable, hasRows },
) {
  return {
    route_keys: keys,
    client_name: ofUsers ? null : client.trim(),
    table_name: hasTable && table.trim() !== '' ? table.trim() : null,
    filter: hasRows && filter.trim() !== '' ? filterIn(filter) : null,
    url: url.trim(),
    ...(headers !== undefined && { headers: headersFrom(headers) }),
    description: description.trim() === '' ? null : description.trim(),
    timeout_ms: Number(timeout),
    is_active: isActive,
  }
}

/** @param {string} text */
function filterIn(text) {
  try {
    return parse(text)
  } catch (error) {
    throw new Error(`The filter is not JSON: ${error instanceof Error ? error.message : error}`)
  }
}

/** The members that differ. @param {Record<string, unknown>} body @param {Record<string, unknown>} before */
const changesIn = (body, before) =>
  Object.fromEntries(
    Object.entries(body).filter(([name, value]) =>
      name === 'headers'
        ? value !== null || JSON.stringify(before.headers) !== '{}'
        : JSON.stringify(value) !== JSON.stringify(before[name]),
    ),
  )

/** @param {{ caller: import('./calls.js').Caller, before: Webhook | undefined }} props */
function Form({ caller, before }) {
  const clients = useClients(caller)
  const [typed, setTyped] = useState(() => typedFrom(before, clients))
  const { events, ...loading } = useEvents(caller)
  const { run, isBusy, failure } = useAct()
  const put = (/** @type {Partial<Typed>} */ change) => setTyped((now) => ({ ...now, ...change }))
  const chosen = eventsOf(events, typed.keys)
  const takes = {
    hasTable: chosen.some(({ table_scope_supported }) => table_scope_supported),
    hasRows: chosen.some(({ category }) => category === 'gateway'),
  }
  const wrong = failure instanceof ApiError ? String(failure.details?.field ?? '') : ''
  const isWrong = (/** @type {string} */ field) => wrong === field || wrong.startsWith(`${field}.`)
  const cancel = () => go(addressOf(before === undefined ? '/webhooks' : `/webhooks/${before.id}`))
  const useReceiver = () => run(async () => put({ url: (await call('/dev/webhooks')).url }))
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    return run(async () => {
      if (typed.keys.length === 0) throw new Error('Choose the events that it gets.')
      const body = bodyFrom(typed, takes)
      if (before === undefined) {
        const made = await callWebhooks(caller, '', { method: 'POST', body })
        hand(made)
        say('The webhook was created')
        return go(addressOf(`/webhooks/${made.id}`), { replaces: true })
      }
      const changes = changesIn(body, { ...before })
      if (Object.keys(changes).length > 0) {
        await callWebhooks(caller, pathOf(before.id), { method: 'PATCH', body: changes })
        say('The webhook was changed')
      }
      go(addressOf(`/webhooks/${before.id}`), { replaces: true })
    })
  }
  return html`<form class="webhook-form" onSubmit=${submit}>
    <${Field} label="Address" type="url" required autofocus autocomplete="off" maxlength="2048" placeholder="https://example.com/hooks"
      aria-invalid=${isWrong('url')} value=${typed.url} onInput=${take((url) => put({ url }))} hint="A server of yours, which gets a signed POST for each event" />
    ${facts.receiver && html`<p class="row"><button type="button" disabled=${isBusy} onClick=${useReceiver}>Use the test receiver</button> <span class="soft">The service shows what it gets.</span></p>`}
    ${
      seesUsers(caller) &&
      html`<${Field} label="Of" value=${typed.ofUsers ? 'users' : 'client'} onChange=${take((kind) => put({ ofUsers: kind === 'users', keys: [] }))}>
        <option value="client">what happens on a client</option><option value="users">users and organizations</option>
      <//>`
    }
    ${
      !typed.ofUsers &&
      html`<${ClientField} clients=${clients} aria-invalid=${isWrong('client_name')} value=${typed.client}
        onChange=${(/** @type {string} */ client) => put({ client })} />`
    }
    <${EventPicker} events=${events} ...${loading} keys=${typed.keys} ofUsers=${typed.ofUsers} onChange=${(/** @type {readonly string[]} */ keys) => put({ keys })} />
    ${
      takes.hasTable &&
      html`<${Field} label="Only of the table" autocomplete="off" placeholder="every table" aria-invalid=${isWrong('table_name')}
        value=${typed.table} onInput=${take((table) => put({ table }))} />`
    }
    ${
      takes.hasRows &&
      html`<${TextArea} label="Only with a row where" rows="2" aria-invalid=${isWrong('filter')} value=${typed.filter} onInput=${take((filter) => put({ filter }))}
        hint=${html`Conditions as JSON: <code>{"column": "done", "value": true}</code>, or a list of them`} />`
    }
    <${Headers} stored=${Object.keys(before?.headers ?? {})} rows=${typed.headers} isWrong=${isWrong('headers')} onChange=${(/** @type {Typed['headers']} */ headers) => put({ headers })} />
    <${Field} label="For" autocomplete="off" maxlength="1000" value=${typed.description} onInput=${take((description) => put({ description }))} hint="A note for colleagues" />
    <${Field} label="Milliseconds to wait for an answer" type="number" required min="1" max="30000" aria-invalid=${isWrong('timeout_ms')}
      value=${typed.timeout} onInput=${take((timeout) => put({ timeout }))} />
    <p><${Check} label="Active" checked=${typed.isActive} onChange=${() => put({ isActive: !typed.isActive })} /></p>
    <${Failure} of=${failure} />
    <div class="row">
      <button class="primary" disabled=${isBusy || events.length === 0}>${before === undefined ? 'Create' : 'Save'}</button>
      <button type="button" onClick=${cancel}>Cancel</button>
    </div>
  </form>`
}
