import { useState } from 'preact/hooks'
import { facts } from '../../api.js'
import { Fact, Link, Panel, Pending, Title } from '../../controls.js'
import { useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { counted, ShortId, Time, textOf, Value } from '../../values.js'
import { Secret, takeIssued } from '../issued-secret.js'
import { Acts } from './acts.js'
import { callWebhooks, isOfUsers, mayRead, pathOf } from './calls.js'
import { Deliveries } from './deliveries.js'
import { Events, Owner, State } from './marks.js'
import { SignatureHelp } from './signature.js'

/** @typedef {import('./calls.js').Webhook} Webhook */

/** One webhook, with its deliveries. @param {{ id: string, caller: import('./calls.js').Caller, query: import('../../router.js').Query }} props */
export function WebhookView({ id, caller, query }) {
  const [secret, setSecret] = useState(() => takeIssued(id))
  const [turn, setTurn] = useState(0)
  const { data, failure, reload } = useLoad((signal) => callWebhooks(caller, pathOf(id), { signal }), [id])
  const webhook = /** @type {Webhook | undefined} */ (data)
  const changed = () => {
    reload()
    setTurn(turn + 1)
  }
  return html`<p class="crumb"><${Link} to="/webhooks">Webhooks<//></p>
    <${Title} title=${webhook?.url ?? 'Webhook'}>${webhook && html`<${State} of=${webhook} />`}<//>
    <${Pending} of="the webhook" data=${webhook} failure=${failure} again=${reload} />
    ${
      webhook !== undefined &&
      html`${secret !== undefined && html`<${Secret} secret=${secret} onClose=${() => setSecret(undefined)} />`}
      <${Acts} webhook=${webhook} caller=${caller} onSecret=${setSecret} onChange=${changed} />
      ${!mayRead(caller, webhook) && html`<p class="soft">Your roles do not read what this webhook sends, so you may pause or delete it, and see how its deliveries went.</p>`}
      <${Facts} webhook=${webhook} />
      <${Deliveries} webhook=${webhook} caller=${caller} query=${query} turn=${turn} />`
    }`
}

/** @param {{ webhook: Webhook }} props */
function Facts({ webhook }) {
  const {
    table_name: table,
    filter,
    headers,
    description,
    disabled_reason: reason,
    former_secrets_until: former,
    created_by: maker,
  } = webhook
  const names = Object.keys(headers)
  return html`<${Panel} title="Webhook">
    <dl class="facts">
      ${reason !== null && html`<${Fact} name="Stopped"><${Value} value=${reason} most=${1_000} /><//>`}
      ${facts.receiver && webhook.url.endsWith('/dev/webhooks') && html`<${Fact} name="Test receiver"><${Link} to="/webhooks/received">what it has received<//><//>`}
      ${description !== null && html`<${Fact} name="For"><${Value} value=${description} most=${1_000} /><//>`}
      <${Fact} name="Id"><code>${webhook.id}</code><//>
      <${Fact} name=${isOfUsers(webhook) ? 'Of' : 'Client'}><${Owner} of=${webhook} /><//>
      <${Fact} name="Events"><${Events} of=${webhook} /><//>
      ${table !== null && html`<${Fact} name="Table"><${Value} value=${table} /><//>`}
      ${filter !== null && html`<${Fact} name="Filter"><code><${Value} value=${textOf(filter)} most=${1_000} /></code><//>`}
      ${
        names.length > 0 &&
        html`<${Fact} name="Headers">${names.map(
          (name) => html`<span class="detail"><code><${Value} value=${name} />: ***</code></span> `,
        )}<//>`
      }
      <${Fact} name="Waits">${counted(webhook.timeout_ms)} ms for an answer<//>
      ${
        former.length > 0 &&
        html`<${Fact} name="Former secret">signs too until ${former.map(
          (until, index) => html`${index > 0 && ', '}<${Time} at=${until} />`,
        )}<//>`
      }
      <${Fact} name="Made"><${Time} at=${webhook.created_at} />${maker && html` by <${Link} to=${`/users/${maker}`}><${ShortId} of=${maker} /><//>`}<//>
    </dl>
    <${SignatureHelp} />
  <//>`
}
