import { useEffect, useRef, useState } from 'preact/hooks'
import { ask, call } from '../../api.js'
import { Failure, say } from '../../controls.js'
import { useAct } from '../../hooks.js'
import { html } from '../../html.js'
import { callFile } from '../../long-answers.js'
import { bytes } from '../../values.js'
import { saveFile } from '../files.js'
import { RestoreForm } from './forms.js'

/** @typedef {import('../backups.js').Job} Job */

/** @param {Job} job */
export const isActive = ({ status }) => status === 'pending' || status === 'running'

/** What can be done with a backup or restore, by its state. @param {{ job: Job, reload: () => void }} props */
export function Acts({ job, reload }) {
  const { run, isBusy, failure } = useAct()
  const [isRestoring, setRestoring] = useState(false)
  const isGoingOn = isActive(job)
  const isThere = job.job_type === 'backup' && (job.status === 'completed' || job.status === 'foreign')
  const cancel = () =>
    run(async () => {
      await call(`/admin/backups/jobs/${job.id}/cancel`, { method: 'POST' })
      say(`The ${job.job_type} of ${job.client_name} is being cancelled`)
      reload()
    })
  const remove = async () => {
    if (!(await ask(deletionOf(job)))) return
    await run(async () => {
      await call(`/admin/backups/${job.id}`, { method: 'DELETE' })
      say('It was deleted')
      reload()
    })
  }
  return html`<div class="row">
      ${isGoingOn && html`<button type="button" disabled=${isBusy} onClick=${cancel}>Cancel</button>`}
      ${isThere && html`<${Download} job=${job} /><button type="button" onClick=${() => setRestoring(true)}>Restore</button>`}
      ${!isGoingOn && html`<button type="button" class="danger" disabled=${isBusy} onClick=${remove}>Delete</button>`}
    </div>
    <${Failure} of=${failure} />
    ${isRestoring && html`<${RestoreForm} job=${job} onClose=${() => setRestoring(false)} onDone=${reload} />`}`
}

/** @param {Job} job */
function deletionOf({ job_type, status, location, client_name, created_at }) {
  const made = `of ${client_name} of ${created_at.slice(0, 16).replace('T', ' ')} UTC`
  const file = location ?? 'its file'
  const text =
    job_type === 'restore'
      ? 'The record of the restore is deleted. The data stays as it is.'
      : status === 'completed'
        ? `${file} is deleted, and cannot be restored any more. This cannot be undone.`
        : status === 'foreign'
          ? `The record is deleted. The file ${file} belongs to another installation, and stays.`
          : 'The record is deleted. It has no file.'
  const title = `Delete the ${job_type} ${made}?`
  return { kind: /** @type {const} */ ('consent'), title, text, verb: 'Delete', isDangerous: true }
}

/** @param {{ job: Job }} props */
function Download({ job }) {
  const { run, isBusy, failure } = useAct()
  const [received, setReceived] = useState(0)
  const loading = useRef(/** @type {AbortController | undefined} */ (undefined))
  useEffect(() => () => loading.current?.abort(), [])
  const begin = () => {
    const aborting = new AbortController()
    loading.current = aborting
    setReceived(0)
    return run(async () => {
      const asked = { signal: aborting.signal, onProgress: setReceived }
      const file = await callFile(`/admin/backups/${job.id}/download`, asked).catch((error) => {
        if (!aborting.signal.aborted) throw error
      })
      if (file !== undefined) saveFile(nameOf(job), file)
    })
  }
  if (!isBusy)
    return html`<button type="button" onClick=${begin}>Download</button><${Failure} of=${failure} />`
  return html`<span class="soft"><progress max=${job.size_bytes ?? 0} value=${received} aria-label="Progress of the download"></progress> ${bytes(received)}</span>
    <button type="button" onClick=${() => loading.current?.abort()}>Stop</button>`
}

/** The last part of a path, or of an address in a bucket. @param {Job} job */
const nameOf = ({ location, id }) => location?.split(/[\\/]/).at(-1) ?? `${id}.backup`
