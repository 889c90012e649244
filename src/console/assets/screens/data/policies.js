import { useState } from 'preact/hooks'
import { ApiError, ask } from '../../api.js'
import { Failure, Line, Mark, Panel, Pending, say } from '../../controls.js'
import { useAct, useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { holds } from '../../session.js'
import { countOf, Value } from '../../values.js'
import { describe } from './described.js'
import { AddPolicy } from './policy-form.js'
import { readSecurity, setSecurity, shownBy, titleOf } from './security.js'
import { SeeAs } from './see-as.js'
import { Unprotected } from './unprotected.js'

/**
 * @typedef {import('./security.js').Security} Security
 * @typedef {import('./security.js').Policy} Policy
 */

/** Who sees which rows, and how to see it. @param {import('./described.js').TableViewProps} props */
export function View({ at, caller }) {
  const { data, failure, reload } = useLoad(async (signal) => {
    const [security, description] = await Promise.all([readSecurity(at, signal), describe(at, signal)])
    return { security, ...description }
  }, [])
  const maySee = holds(caller, at.client, 'gateway.bypass_row_level_security')
  if (failure instanceof ApiError && failure.code === 'row_level_security_off')
    return html`<${Unprotected} at=${at} caller=${caller} failure=${failure} onProtected=${reload} />`
  return html`<${Pending} of="the policies" data=${data} failure=${failure} again=${reload} />
    ${
      data !== undefined &&
      html`<${Policies} at=${at} caller=${caller} security=${data.security} columns=${data.columns} isTable=${data.isTable} reload=${reload} />
      ${maySee && html`<${SeeAs} at=${at} caller=${caller} />`}`
    }`
}

/** @param {import('./described.js').TableViewProps & { security: Security, columns: readonly import('./described.js').Column[], isTable: boolean, reload: () => void }} props */
function Policies({ at, caller, security, columns, isTable, reload }) {
  const [isAdding, setAdding] = useState(false)
  const { run, isBusy, failure } = useAct()
  const mayWrite = isTable && holds(caller, at.client, 'management.tables.write')
  const { enabled, policies } = security
  const set = async (
    /** @type {boolean} */ on,
    /** @type {readonly Policy[]} */ next,
    /** @type {string} */ done,
  ) => {
    await setSecurity(at, security, on, next)
    setAdding(false)
    say(done)
    reload()
  }
  const turn = async () => {
    const title = enabled ? 'Turn row-level security off?' : 'Turn row-level security on?'
    const text = enabled
      ? `${countOf(policies.length, 'policy', 'policies')} of ${at.table} are removed, and users and visitors lose every right to the table: it is closed to them, not open. Keys with the right to what policies hide go on.`
      : `${at.table} is closed to users and visitors until a policy shows them rows.`
    if (
      await ask({
        kind: 'consent',
        isDangerous: enabled,
        title,
        text,
        verb: enabled ? 'Turn it off' : 'Turn it on',
      })
    )
      await run(() => set(!enabled, [], enabled ? 'Row-level security is off' : 'Row-level security is on'))
  }
  const remove = async (/** @type {Policy} */ policy) => {
    const text = `No longer: ${shownBy(policy)} Rows that another policy shows stay visible.`
    const title = `Remove the policy ${titleOf(policy)}?`
    if (await ask({ kind: 'consent', isDangerous: true, title, text, verb: 'Remove the policy' }))
      await run(() =>
        set(
          true,
          policies.filter((one) => one !== policy),
          `${titleOf(policy)} was removed`,
        ),
      )
  }
  const actions =
    mayWrite &&
    html`<button type="button" disabled=${isBusy} onClick=${() => setAdding(true)}>Add policy</button>
      <button type="button" class=${enabled ? 'danger' : ''} disabled=${isBusy} onClick=${turn}>${enabled ? 'Turn off' : 'Turn on'}</button>`
  return html`<${Panel} title="Policies" actions=${actions}
      note=${html`<${Mark} tone=${enabled ? 'good' : 'warn'}>${enabled ? 'row-level security is on' : 'row-level security is off'}<//>`}>
      <${Failure} of=${failure} />
      ${policies.length === 0 && html`<p class="empty">${enabled ? 'No policy: users and visitors see no row.' : 'No policy.'}</p>`}
      <ul class="list">
        ${policies.map(
          (
            policy,
          ) => html`<${Line} key=${titleOf(policy)} left=${html`<strong><${Value} value=${titleOf(policy)} /></strong>`}
            note=${html`<${Value} value=${shownBy(policy)} most=${1_000} />`}
            right=${mayWrite && html`<button type="button" class="danger" aria-label=${`Remove ${titleOf(policy)}`} disabled=${isBusy} onClick=${() => remove(policy)}>Remove</button>`} />`,
        )}
        ${security.other_policies.map(
          (
            other,
          ) => html`<${Line} key=${`other ${other.name}`} left=${html`<strong><${Value} value=${other.name} /></strong> <${Mark}>made in SQL<//>`}
            note=${html`<${Value} value=${shownBy(other)} most=${1_000} />`} />`,
        )}
      </ul>
    <//>
    <${Panel} title="Rights of callers" note="by the policies">
      <ul class="list">${security.grants.map(
        ({ role, privileges }) =>
          html`<${Line} key=${role} left=${html`<${Value} value=${role} />`} right=${privileges.length === 0 ? html`<span class="soft">none: closed</span>` : html`<${Value} value=${privileges.join(', ')} />`} />`,
      )}</ul>
    <//>
    ${isAdding && html`<${AddPolicy} at=${at} security=${security} columns=${columns} onClose=${() => setAdding(false)} onAdd=${(/** @type {Policy} */ policy) => set(true, [...policies, policy], `${titleOf(policy)} was added`)} />`}`
}
