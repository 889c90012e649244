import { useState } from 'preact/hooks'
import { call } from '../api.js'
import { Check, Mark, Pending, Table, Title, take } from '../controls.js'
import { useLoad } from '../hooks.js'
import { html } from '../html.js'
import { goWith } from '../router.js'
import { countOf, Value } from '../values.js'

/** @typedef {{ setting: string, value: string | null, default: string | null, absent: string | null, source: string, is_secret: boolean }} Setting */

/** @type {readonly import('../controls.js').Column<Setting>[]} */
const COLUMNS = [
  { name: 'setting', title: 'Setting', cell: ({ setting }) => html`<code>${setting}</code>` },
  {
    name: 'value',
    title: 'Value',
    cell: ({ value, absent, is_secret }) =>
      html`${value === null ? html`<span class="soft">${absent ?? 'none'}</span>` : html`<${Value} value=${value} />`}${is_secret && html` <${Mark}>secret<//>`}`,
  },
  {
    name: 'source',
    title: 'From',
    cell: ({ source }) =>
      source === 'default'
        ? html`<span class="soft">default</span>`
        : html`<${Mark} tone="good">${source}<//>`,
  },
  { name: 'default', title: 'Default', cell: (one) => html`<span class="soft">${one.default ?? '–'}</span>` },
]

/** @param {Setting} one */
const nameOf = ({ setting }) => setting

/** What is configured and from where. Secrets are masked by the service. @param {import('../router.js').ViewProps} props */
export function View({ query: { search = '', changed = '' } }) {
  const { data, failure, reload } = useLoad((signal) => call('/admin/settings', { signal }), [])
  const [text, setText] = useState(search)
  /** @type {readonly Setting[]} */
  const all = data?.data.settings ?? []
  const shown = all.filter(
    ({ setting, value, source }) =>
      (changed === '' || source !== 'default') &&
      `${setting} ${value ?? ''}`.toLowerCase().includes(text.toLowerCase()),
  )
  const find = (/** @type {string} */ next) => {
    setText(next)
    goWith({ search: next }, { replaces: true })
  }
  return html`<${Title} title="Settings"><span class="soft">${data && countOf(shown.length, 'setting')}</span><//>
    <div class="tools" role="search">
      <label>Search <input type="search" value=${text} onInput=${take(find)} placeholder="Part of a name or value" /></label>
      <${Check} label="Only those that differ from the default" checked=${changed !== ''} onChange=${() => goWith({ changed: changed === '' ? '1' : undefined }, { replaces: true })} />
    </div>
    <${Pending} of="the settings" data=${data} failure=${failure} again=${reload} />
    ${
      data !== undefined &&
      html`<${Table} label="Settings" columns=${COLUMNS} rows=${shown} keyOf=${nameOf} empty="No setting matches." />
      <p class="fine">They are changed in the file, the environment or by options of the command, and hold from the next start.</p>`
    }`
}
