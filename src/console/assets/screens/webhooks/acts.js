import { useState } from 'preact/hooks'
import { ask } from '../../api.js'
import { Failure, Link, say } from '../../controls.js'
import { useAct } from '../../hooks.js'
import { html } from '../../html.js'
import { addressOf, go } from '../../router.js'
import { duration, Value } from '../../values.js'
import { callWebhooks, mayRead, pathOf } from './calls.js'
import { StatusMark } from './marks.js'

/**
 * The acts on a webhook that the caller may do. Who may not read what it sends can still stop it.
 * @param {{ webhook: import('./calls.js').Webhook, caller: import('./calls.js').Caller, onSecret: (secret: string) => void, onChange: () => void }} props
 */
export function Acts({ webhook, caller, onSecret, onChange }) {
  const { id, url, is_active: isActive } = webhook
  const { run, isBusy, failure } = useAct()
  const [tested, setTested] = useState(/** @type {import('./calls.js').Delivery | undefined} */ (undefined))
  const post = (/** @type {string} */ more) => callWebhooks(caller, pathOf(id, more), { method: 'POST' })
  const sendTest = () =>
    run(async () => {
      setTested(undefined)
      setTested(await post('/test'))
      onChange()
    })
  const setActive = (/** @type {boolean} */ next) =>
    run(async () => {
      await callWebhooks(caller, pathOf(id), { method: 'PATCH', body: { is_active: next } })
      say(next ? 'The webhook is active' : 'The webhook is paused')
      onChange()
    })
  const rotate = async () => {
    const text =
      'A new secret is shown, once. For 24 hours the present one signs too, so that your server can change over.'
    if (!(await ask({ kind: 'consent', title: 'Rotate the secret?', text, verb: 'Rotate' }))) return
    await run(async () => {
      onSecret((await post('/rotate-secret')).secret)
      onChange()
    })
  }
  const remove = async () => {
    const text = `No event is sent to ${url} any more. The log of its deliveries and what waits for it are lost. This cannot be undone.`
    if (
      !(await ask({
        kind: 'consent',
        title: 'Delete the webhook?',
        text,
        verb: 'Delete the webhook',
        isDangerous: true,
      }))
    )
      return
    await run(async () => {
      await callWebhooks(caller, pathOf(id), { method: 'DELETE' })
      say('The webhook was deleted')
      go(addressOf('/webhooks'), { replaces: true })
    })
  }
  const button = (/** @type {string} */ label, /** @type {() => unknown} */ onClick, kind = '') =>
    html`<button type="button" class=${kind} disabled=${isBusy} onClick=${onClick}>${label}</button>`
  const mayAll = mayRead(caller, webhook)
  return html`<div class="row acts">
      ${mayAll && button('Send a test', sendTest)}
      ${mayAll && button('Edit', () => go(addressOf(`/webhooks/${id}/edit`)))}
      ${mayAll && button('Rotate the secret', rotate)}
      ${isActive ? button('Pause', () => setActive(false)) : mayAll && button('Activate', () => setActive(true))}
      ${button('Delete', remove, 'danger')}
    </div>
    <${Failure} of=${failure} />
    ${tested && html`<${Tested} delivery=${tested} webhook=${id} />`}`
}

/** The outcome of a test. @param {{ delivery: import('./calls.js').Delivery, webhook: string }} props */
const Tested = ({
  delivery: { id, status, response_status: code, error, duration_ms: time },
  webhook,
}) => html`<p class="acts" role="status">
  Test: <${StatusMark} of=${status} /> ${error === null ? `status ${code}` : html`<${Value} value=${error} />`}${
    time !== null && ` after ${duration(time)}`
  } · <${Link} to=${`/webhooks/${webhook}/deliveries/${id}`}>Request and answer<//>
</p>`
