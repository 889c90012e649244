import { ask, call } from '../../api.js'
import { Failure, Panel, say } from '../../controls.js'
import { useAct } from '../../hooks.js'
import { html } from '../../html.js'
import { may } from '../../session.js'
import { Value } from '../../values.js'

/**
 * The tables of a client without row-level security have no policies. Where no setting decides, it is switched on here.
 * @param {import('./described.js').TableViewProps & { failure: import('../../api.js').ApiError, onProtected: () => void }} props
 */
export function Unprotected({ at, caller, failure, onProtected }) {
  const act = useAct()
  const isUndecided = failure.details?.is_undecided === true
  const mayProtect = isUndecided && may(caller, ['operator:clients'])
  const protect = async () => {
    const title = `Switch row-level security of ${at.client} on?`
    const text = `Users and visitors then reach only the rows that policies show them, and so do keys and people without gateway.bypass_row_level_security: every table of ${at.client} is closed to them until it has a policy. Only gatehouse.yaml switches it off again.`
    if (!(await ask({ kind: 'consent', isDangerous: true, title, text, verb: 'Switch it on' }))) return
    await act.run(async () => {
      const path = `/admin/clients/${encodeURIComponent(at.client)}/row-level-security`
      await call(path, { method: 'PUT', body: { enabled: true } })
      say(`Row-level security of ${at.client} is on`)
      onProtected()
    })
  }
  return html`<${Panel} title="Policies" actions=${mayProtect && html`<button type="button" class="primary" disabled=${act.isBusy} onClick=${protect}>Switch it on</button>`}>
    <div class="padded">
      <p>This client has no row-level security: who has a key with a right to the table sees all of its rows. ${
        isUndecided
          ? !mayProtect && html`An operator with <code>operator: clients</code> can switch it on here.`
          : html`<${Value} value=${failure.hint} />`
      }</p>
      ${isUndecided ? mayProtect && html`<p>With it, policies decide which rows users and visitors see, so that a page may query the tables itself.</p>` : html`<pre>${yamlOf(failure)}</pre>`}
      <${Failure} of=${act.failure} />
    </div><//>`
}

/** The setting as lines of the file. @param {import('../../api.js').ApiError} failure */
const yamlOf = ({ details }) =>
  `${String(details?.setting)
    .split('.')
    .map((name, depth) => `${'  '.repeat(depth)}${name}:`)
    .join('\n')} true`
