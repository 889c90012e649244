import { Fact, Link } from '../../controls.js'
import { html } from '../../html.js'
import { may } from '../../session.js'
import { ShortId } from '../../values.js'

/** By whom a record was made, where the caller may know. @param {{ by: string | null | undefined, caller: import('../../session.js').Caller }} props */
export function Creator({ by, caller }) {
  if (by === undefined) return null
  return html`<${Fact} name="By">${
    by === null
      ? html`<span class="soft">the admin key, or a command</span>`
      : may(caller, ['user:get'])
        ? html`<${Link} to=${`/users/${by}`}><${ShortId} of=${by} /><//>`
        : html`<${ShortId} of=${by} />`
  }<//>`
}
