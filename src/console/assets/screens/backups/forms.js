import { useState } from 'preact/hooks'
import { call } from '../../api.js'
import { Dialog, Failure, Field, say, take } from '../../controls.js'
import { useAct, useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { clientsOf } from '../../session.js'
import { bytes, Time, Value } from '../../values.js'

/** @param {{ caller: import('../../session.js').Caller, onClose: () => void, onDone: () => void }} props */
export function BackUpForm({ caller, onClose, onDone }) {
  // Who may see no list types the name.
  const { data } = useLoad((signal) => clientsOf(caller, signal).catch(() => []), [caller])
  const [client, setClient] = useState('default')
  const [label, setLabel] = useState('')
  const { run, isBusy, failure } = useAct()
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    return run(async () => {
      const body = { client_name: client, ...(label !== '' && { label }) }
      await call('/admin/backups', { method: 'POST', body })
      say(`The backup of ${client} has begun`)
      onClose()
      onDone()
    })
  }
  const names = data ?? []
  return html`<${Dialog} title="Back up" onClose=${onClose}>
    <form onSubmit=${submit}>
      ${
        names.length > 1
          ? html`<${Field} label="Client" value=${client} onChange=${take(setClient)}>${names.map((name) => html`<option value=${name}>${name}</option>`)}<//>`
          : html`<${Field} label="Client" required autocomplete="off" value=${client} onInput=${take(setClient)} />`
      }
      <${Field} label="Label" autofocus autocomplete="off" maxlength="200" placeholder="before the migration" value=${label} onInput=${take(setLabel)}
        hint="On the embedded server a backup is an archive of the whole server: users, keys and every client." />
      <${Failure} of=${failure} />
      <div class="row">
        <button class="primary" disabled=${isBusy}>Back up</button>
        <button type="button" onClick=${onClose}>Cancel</button>
      </div>
    </form>
  <//>`
}

/** @param {{ job: import('../backups.js').Job, onClose: () => void, onDone: () => void }} props */
export function RestoreForm({ job, onClose, onDone }) {
  if (job.format === 'archive')
    return html`<${Dialog} title="Restore an archive" onClose=${onClose}>
      <p>An archive has the whole server. It is restored on the machine, into an empty folder, with the service stopped:</p>
      <pre><code>npx gatehouse restore <${Value} value=${job.location ?? 'FILE'} /> --data-dir ./restored --secret-file ./data/secret</code></pre>
      <div class="row"><button type="button" class="primary" autofocus onClick=${onClose}>Close</button></div>
    <//>`
  return html`<${RestoreDump} job=${job} onClose=${onClose} onDone=${onDone} />`
}

/** @param {{ job: import('../backups.js').Job, onClose: () => void, onDone: () => void }} props */
function RestoreDump({ job, onClose, onDone }) {
  const [client, setClient] = useState(job.client_name)
  const [typed, setTyped] = useState('')
  const { run, isBusy, failure } = useAct()
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    return run(async () => {
      await call(`/admin/backups/${job.id}/restore`, {
        method: 'POST',
        body: { client_name: client, confirm: typed },
      })
      say(`The restore of ${client} has begun`)
      onClose()
      onDone()
    })
  }
  return html`<${Dialog} title=${`Restore into ${client}`} onClose=${onClose}>
    <form onSubmit=${submit}>
      <p>All that was written to <strong><${Value} value=${client} /></strong> since <${Time} at=${job.created_at} /> is lost: each table of the dump
        (${job.size_bytes === null ? 'of unknown size' : bytes(job.size_bytes)}) is replaced by what it was then. Tables that the dump does not contain stay.</p>
      <p>Until it has ended, this client and every other one of its database refuse writes. Running answers and pipelines of the client end unfinished. It cannot be undone: back up first.</p>
      <${Field} label="Into the client" required autocomplete="off" value=${client} onInput=${take(setClient)} />
      <${Field} label=${`Type ${client} to confirm`} required autofocus autocomplete="off" value=${typed} onInput=${take(setTyped)} />
      <${Failure} of=${failure} />
      <div class="row">
        <button class="danger" disabled=${isBusy || typed !== client}>Restore</button>
        <button type="button" onClick=${onClose}>Cancel</button>
      </div>
    </form>
  <//>`
}
