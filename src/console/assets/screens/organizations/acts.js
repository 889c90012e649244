import { useId, useState } from 'preact/hooks'
import { ask, auth, call } from '../../api.js'
import { ActForm, Check, Failure, Field, say, take } from '../../controls.js'
import { useAct } from '../../hooks.js'
import { html } from '../../html.js'
import { addressOf, go } from '../../router.js'
import { may } from '../../session.js'
import { indented } from './metadata.js'

/** @param {string} path @param {object} body */
export const post = (path, body) => call(auth(path), { method: 'POST', body })

/**
 * The acts on an organization that the caller's roles allow.
 * @param {{ organization: import('./organization.js').Organization, caller: import('../../session.js').Caller, reload: () => void }} props
 */
export function Acts({ organization, caller, reload }) {
  const [isEditing, setEditing] = useState(false)
  const { run, isBusy, failure } = useAct()
  const { id, name } = organization
  const remove = async () => {
    const text = `${name} is deleted with its memberships and invitations. Users stay. This cannot be undone.`
    const question = { title: `Delete ${name}?`, text, verb: 'Delete the organization', isDangerous: true }
    if (!(await ask({ kind: 'consent', ...question }))) return
    await run(async () => {
      await post('/admin/delete-organization', { organizationId: id })
      say(`${name} was deleted`)
      go(addressOf('/organizations'), { replaces: true })
    })
  }
  const finish = () => {
    setEditing(false)
    say('The organization was changed')
    reload()
  }
  return html`<div class="row acts">
      ${may(caller, ['organization:update']) && html`<button type="button" disabled=${isBusy} onClick=${() => setEditing(true)}>Edit</button>`}
      ${may(caller, ['organization:delete']) && html`<button type="button" class="danger" disabled=${isBusy} onClick=${remove}>Delete</button>`}
    </div>
    <${Failure} of=${failure} />
    ${isEditing && html`<${EditForm} organization=${organization} onDone=${finish} onClose=${() => setEditing(false)} />`}`
}

/** @param {{ organization: import('./organization.js').Organization, onDone: () => void, onClose: () => void }} props */
function EditForm({ organization, onDone, onClose }) {
  const before = {
    name: organization.name,
    slug: organization.slug,
    logo: organization.logo ?? '',
    metadata: indented(organization.metadata),
    requireTwoFactor: organization.requireTwoFactor,
  }
  const [typed, setTyped] = useState(before)
  const id = useId()
  const set = (/** @type {'name' | 'slug' | 'logo' | 'metadata'} */ field) =>
    take((value) => setTyped({ ...typed, [field]: value }))
  const work = async () => {
    // What was left as it is may have been changed by somebody else meanwhile.
    const changed = Object.entries(typed).filter(
      ([field, value]) => value !== before[/** @type {keyof typeof before} */ (field)],
    )
    const data = Object.fromEntries(
      changed.map(([field, value]) => [field, field === 'logo' && value === '' ? null : value]),
    )
    await post('/admin/update-organization', { organizationId: organization.id, data })
    onDone()
  }
  const { requireTwoFactor } = typed
  return html`<${ActForm} title=${`Edit ${organization.name}`} verb="Save" onClose=${onClose} work=${work}>
    <${Field} label="Name" required autofocus autocomplete="off" value=${typed.name} onInput=${set('name')} />
    <${Field} label="Slug" required autocomplete="off" value=${typed.slug} onInput=${set('slug')} />
    <${Field} label="Logo" type="url" autocomplete="off" value=${typed.logo} onInput=${set('logo')} hint="An address" />
    <div class="field">
      <label for=${id}>Metadata</label>
      <textarea id=${id} class="metadata" rows="6" spellcheck=${false} value=${typed.metadata} onInput=${set('metadata')}></textarea>
    </div>
    <p><${Check} label="Active only in sessions with a second factor" checked=${requireTwoFactor}
      onChange=${() => setTyped({ ...typed, requireTwoFactor: !requireTwoFactor })} /></p>
  <//>`
}
