import { facts, parse } from '../../api.js'
import { Fact, Failure, Link, Panel, Pending, say, Title } from '../../controls.js'
import { useAct, useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { duration, Time, Value } from '../../values.js'
import { callWebhooks, mayRead, pathOf } from './calls.js'
import { StatusMark } from './marks.js'

/** @typedef {import('./calls.js').Delivery & { request_body: string | null }} SentDelivery */
/** @typedef {import('./calls.js').Webhook} Webhook */

/** Characters of a body. */
const SHOWN = 40_000

/** One delivery: what is sent, and the last answer. @param {{ id: string, delivery: string, caller: import('./calls.js').Caller }} props */
export function DeliveryView({ id, delivery: deliveryId, caller }) {
  const path = pathOf(id, `/deliveries/${encodeURIComponent(deliveryId)}`)
  const { data, failure, reload, isLoading } = useLoad(
    async (signal) => {
      const [webhook, delivery] = await Promise.all([
        callWebhooks(caller, pathOf(id), { signal }),
        callWebhooks(caller, path, { signal }),
      ])
      return { webhook: /** @type {Webhook} */ (webhook), delivery: /** @type {SentDelivery} */ (delivery) }
    },
    [path],
  )
  const act = useAct()
  const replay = () =>
    act.run(async () => {
      await callWebhooks(caller, `${path}/retry`, { method: 'POST' })
      say('The delivery is due again')
      reload()
    })
  return html`<p class="crumb"><${Link} to="/webhooks">Webhooks<//> / ${
    data && html`<${Link} to=${`/webhooks/${id}`}><${Value} value=${data.webhook.url} most=${80} /><//>`
  }</p>
    <${Title} title="Delivery">${data && html`<${StatusMark} of=${data.delivery.status} />`}<//>
    <${Pending} of="the delivery" data=${data} failure=${failure} again=${reload} />
    ${
      data !== undefined &&
      html`<div class="row acts">
        ${mayRead(caller, data.webhook) && data.webhook.is_active && html`<button type="button" class="primary" disabled=${act.isBusy} onClick=${replay}>Replay</button>`}
        <button type="button" disabled=${isLoading} onClick=${reload}>Read again</button>
      </div>
      <${Failure} of=${act.failure} />
      <div class="columns"><${Request} of=${data.delivery} webhook=${data.webhook} /><${Answer} of=${data.delivery} /></div>`
    }`
}

/** @param {{ of: SentDelivery, webhook: Webhook }} props */
function Request({
  of: { event_id: event, route_key: key, created_at: at, request_body: body },
  webhook: { url, headers },
}) {
  const sent = {
    'content-type': 'application/json',
    'user-agent': `gatehouse/${facts.version}`,
    'webhook-id': event,
    'webhook-timestamp': '(of the attempt)',
    'webhook-signature': '(of the attempt)',
    ...headers,
  }
  return html`<${Panel} title="Request" note="address and headers as they are now">
    <dl class="facts">
      <${Fact} name="Event"><code>${key}</code><//>
      <${Fact} name="Happened"><${Time} at=${at} /><//>
      <${Fact} name="POST"><${Value} value=${url} most=${2_048} /><//>
      <${Fact} name="Headers">${Object.entries(sent).map(
        ([name, value]) => html`<code><${Value} value=${name} />: <${Value} value=${value} /></code><br />`,
      )}<//>
    </dl>
    <${Body} label="Body of the request" text=${body} />
  <//>`
}

/** @param {{ of: SentDelivery }} props */
function Answer({
  of: {
    response_status: code,
    response_body: body,
    error,
    duration_ms: time,
    attempt,
    next_attempt_at: next,
  },
}) {
  return html`<${Panel} title="Answer" note="of the last attempt">
    <dl class="facts">
      <${Fact} name="Status">${code ?? html`<span class="null">none</span>`}<//>
      ${error !== null && html`<${Fact} name="Failure"><${Value} value=${error} most=${500} /><//>`}
      <${Fact} name="Took">${time === null ? html`<span class="null">no attempt yet</span>` : duration(time)}<//>
      <${Fact} name="Attempts">${attempt}<//>
      ${next !== null && html`<${Fact} name="Next"><${Time} at=${next} /><//>`}
    </dl>
    ${code !== null && html`<${Body} label="Body of the answer" text=${body} />`}
  <//>`
}

/** @param {{ label: string, text: string | null }} props */
export const Body = ({ label, text }) =>
  text === null
    ? html`<p class="soft">Your roles do not read what this webhook sends, so they do not see this.</p>`
    : html`<pre class="sent-body" role="region" aria-label=${label} tabindex="0"><${Value} value=${indented(text)} most=${SHOWN} /></pre>`

/** JSON on lines of its own, with every digit; anything else as it is. @param {string} text */
function indented(text) {
  try {
    return JSON.stringify(parse(text), null, 2)
  } catch {
    return text
  }
}
