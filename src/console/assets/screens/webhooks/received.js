import { call } from '../../api.js'
import { Fact, Link, Mark, Panel, Pending, Table, Title } from '../../controls.js'
import { useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { ShortId, Time, Value } from '../../values.js'
import { Body } from './delivery.js'

/**
 * @typedef {'verified' | 'wrong' | 'missing'} Signature
 * @typedef {{ id: string, received_at: string, webhook_id: string | null, signature: Signature, type: string | null }} Listed
 * @typedef {Listed & { headers: readonly { name: string, value: string }[], body: string }} Received
 */

/** What the receiver of the service got, in development. @param {{ id: string | undefined }} props */
export const ReceivedView = ({ id }) => (id ? html`<${One} key=${id} id=${id} />` : html`<${All} />`)

const TONES = /** @type {const} */ ({ verified: 'good', wrong: 'bad', missing: 'warn' })
const WORDS = { verified: 'verified', wrong: 'not verified', missing: 'not signed' }

/** @param {{ of: Signature }} props */
const SignatureMark = ({ of: signature }) => html`<${Mark} tone=${TONES[signature]}>${WORDS[signature]}<//>`

/** @param {{ id: string | null }} props */
const Sender = ({ id }) =>
  id === null
    ? html`<span class="null">none</span>`
    : html`<${Link} to=${`/webhooks/${id}`}><${ShortId} of=${id} /><//>`

/** @type {readonly import('../../controls.js').Column<Listed>[]} */
const COLUMNS = [
  { name: 'at', title: 'Received', cell: ({ received_at: at }) => html`<${Time} at=${at} />` },
  {
    name: 'type',
    title: 'Event',
    cell: ({ id, type }) =>
      html`<${Link} to=${`/webhooks/received/${id}`}><${Value} value=${type ?? 'without a type'} /><//>`,
  },
  {
    name: 'signature',
    title: 'Signature',
    cell: ({ signature }) => html`<${SignatureMark} of=${signature} />`,
  },
  { name: 'webhook', title: 'Webhook', cell: ({ webhook_id: id }) => html`<${Sender} id=${id} />` },
]

function All() {
  const { data, failure, isLoading, reload } = useLoad((signal) => call('/dev/webhooks', { signal }), [])
  return html`<p class="crumb"><${Link} to="/webhooks">Webhooks<//></p>
    <${Title} title="Received"><button type="button" onClick=${reload}>Read again</button><//>
    <${Pending} of="what was received" data=${data} failure=${failure} again=${reload} />
    ${
      data !== undefined &&
      html`<${Table} label="Received webhooks" columns=${COLUMNS} rows=${data.webhooks} keyOf=${(/** @type {Listed} */ { id }) => id} isBusy=${isLoading}
          empty="Nothing yet. A webhook to the test receiver gets here what happens, and its test sends an example." />
        <p class="fine received-note">In development the service receives webhooks itself, on this machine alone, at <code>${data.url}</code>. It keeps the newest ones in memory.</p>`
    }`
}

/** @param {{ id: string }} props */
function One({ id }) {
  const { data, failure, reload } = useLoad(
    (signal) => call(`/dev/webhooks/${encodeURIComponent(id)}`, { signal }),
    [id],
  )
  const received = /** @type {Received | undefined} */ (data)
  return html`<p class="crumb"><${Link} to="/webhooks">Webhooks<//> / <${Link} to="/webhooks/received">Received<//></p>
    <${Title} title=${received?.type ?? 'Received webhook'} />
    <${Pending} of="the request" data=${received} failure=${failure} again=${reload} />
    ${
      received !== undefined &&
      html`<${Panel} title="Request">
        <dl class="facts">
          <${Fact} name="Received"><${Time} at=${received.received_at} /><//>
          <${Fact} name="Signature"><${SignatureMark} of=${received.signature} /><//>
          <${Fact} name="Webhook"><${Sender} id=${received.webhook_id} /><//>
          <${Fact} name="Headers">${received.headers.map(
            ({ name, value }) =>
              html`<code><${Value} value=${name} />: <${Value} value=${value} most=${2_000} /></code><br />`,
          )}<//>
        </dl>
        <${Body} label="Body of the request" text=${received.body} />
      <//>`
    }`
}
