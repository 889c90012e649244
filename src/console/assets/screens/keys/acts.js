import { useState } from 'preact/hooks'
import { ask, call } from '../../api.js'
import { Dialog, Failure, Field, say, take } from '../../controls.js'
import { useAct } from '../../hooks.js'
import { html } from '../../html.js'
import { addressOf, go } from '../../router.js'

/** @typedef {import('./record.js').Key} Key */

/**
 * @param {{ of: Key, onEdit: () => void, onSecret: (secret: string) => void, reload: () => void }} props
 */
export function Acts({ of: key, onEdit, onSecret, reload }) {
  const [isRotating, setRotating] = useState(false)
  const { run, isBusy, failure } = useAct()
  const path = `/admin/api-keys/${key.id}`
  const turn = async () => {
    const text = 'Requests with it are refused from now on, with 401. It can be activated again.'
    const question = { title: `Deactivate ${key.name}?`, text, verb: 'Deactivate' }
    if (key.is_active && !(await ask({ kind: 'consent', ...question, isDangerous: true }))) return
    await run(async () => {
      await call(path, { method: 'PATCH', body: { is_active: !key.is_active } })
      say(key.is_active ? `${key.name} is inactive` : `${key.name} is active`)
      reload()
    })
  }
  const revoke = async () => {
    const text = `svc_${key.public_id} is deleted, and every request with it is refused from now on. This cannot be undone.`
    const question = { title: `Revoke ${key.name}?`, text, verb: 'Revoke the key' }
    if (!(await ask({ kind: 'consent', ...question, isDangerous: true }))) return
    await run(async () => {
      await call(path, { method: 'DELETE' })
      say(`${key.name} was revoked`)
      go(addressOf('/keys'), { replaces: true })
    })
  }
  const finish = (/** @type {string} */ secret) => {
    setRotating(false)
    onSecret(secret)
    say(`${key.name} has a new secret`)
    reload()
  }
  return html`<div class="row acts">
      <button type="button" onClick=${onEdit}>Edit</button>
      <button type="button" onClick=${() => setRotating(true)}>Rotate</button>
      <button type="button" disabled=${isBusy} onClick=${turn}>${key.is_active ? 'Deactivate' : 'Activate'}</button>
      <button type="button" class="danger" disabled=${isBusy} onClick=${revoke}>Revoke</button>
    </div>
    <${Failure} of=${failure} />
    ${isRotating && html`<${Rotation} of=${key} onDone=${finish} onClose=${() => setRotating(false)} />`}`
}

/** In seconds. @type {readonly (readonly [string, string])[]} */
const GRACES = [
  ['0', 'No longer'],
  ['3600', 'An hour'],
  ['86400', 'A day'],
  ['604800', 'A week'],
]

/** @param {{ of: Key, onDone: (secret: string) => void, onClose: () => void }} props */
function Rotation({ of: { id, name }, onDone, onClose }) {
  const [grace, setGrace] = useState('3600')
  const { run, isBusy, failure } = useAct()
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    return run(async () => {
      const body = { grace_seconds: Number(grace) }
      const { data } = await call(`/admin/api-keys/${id}/rotate`, { method: 'POST', body })
      onDone(data.api_key)
    })
  }
  return html`<${Dialog} title=${`Rotate ${name}`} onClose=${onClose}>
    <form onSubmit=${submit}>
      <p>The key gets a new secret. Its name, rights and public part stay.</p>
      <${Field} label="The old secret works" autofocus value=${grace} onChange=${take(setGrace)}>
        ${GRACES.map(([value, title]) => html`<option value=${value}>${title}</option>`)}
      <//>
      <${Failure} of=${failure} />
      <div class="row">
        <button class="primary" disabled=${isBusy}>Rotate</button>
        <button type="button" onClick=${onClose}>Cancel</button>
      </div>
    </form>
  <//>`
}
