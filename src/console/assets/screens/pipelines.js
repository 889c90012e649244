import { call } from '../api.js'
import { Link, Pending, Table, Title } from '../controls.js'
import { useLoad } from '../hooks.js'
import { html } from '../html.js'
import { addressOf, go } from '../router.js'
import { Value } from '../values.js'
import { Editor } from './pipelines/editor.js'
import { Runs, RunView, seesLog } from './pipelines/runs.js'

/** @typedef {import('./pipelines/drafts.js').Named} Named */

/** @param {import('../router.js').ViewProps} props */
export function View({ caller, rest, query }) {
  const [part, id = ''] = rest.split('/')
  if (part === 'runs' && id !== '') return html`<${RunView} key=${id} id=${id} caller=${caller} />`
  if (part === 'edit') return html`<${EditView} caller=${caller} query=${query} />`
  return html`<${List} caller=${caller} query=${query} />`
}

/** Those of the file. */
const useNamed = () => useLoad((signal) => call('/pipelines/templates', { signal }), [])

/** @type {readonly import('../controls.js').Column<Named>[]} */
const COLUMNS = [
  {
    name: 'name',
    title: 'Name',
    cell: ({ name, description }) =>
      html`<${Link} to="/pipelines/edit" query=${{ from: `named:${name}` }}><${Value} value=${name} /><//>${
        description !== null && html`<br /><span class="soft"><${Value} value=${description} /></span>`
      }`,
  },
  {
    name: 'source',
    title: 'From',
    cell: ({ source_table: table, source_client: client }) =>
      html`<${End} table=${table} client=${client} />`,
  },
  {
    name: 'sink',
    title: 'Into',
    cell: ({ sink_table: table, sink_client: client }) => html`<${End} table=${table} client=${client} />`,
  },
]

/** @param {{ table: string | null, client: string | null }} props */
const End = ({ table, client }) =>
  html`${table === null ? html`<span class="null">open</span>` : html`<${Value} value=${table} />`}${
    client !== null && html` <span class="soft">on <${Value} value=${client} /></span>`
  }`

/** @param {Pick<import('../router.js').ViewProps, 'caller' | 'query'>} props */
function List({ caller, query }) {
  const { data, failure, reload } = useNamed()
  return html`<${Title} title="Pipelines">
      <button type="button" class="primary" onClick=${() => go(addressOf('/pipelines/edit'))}>New pipeline</button>
    <//>
    <${Pending} of="the pipelines" data=${data} failure=${failure} again=${reload} />
    ${
      data !== undefined &&
      html`<div class="acts"><${Table} label="Named pipelines" columns=${COLUMNS} rows=${data.templates} keyOf=${(/** @type {Named} */ { name }) => name}
        empty=${html`No pipeline has a name yet. Names are given in <code>pipelines.yaml</code> of the service: try one here, and put its definition there.`} /></div>`
    }
    ${seesLog(caller) && html`<${Runs} caller=${caller} query=${query} />`}`
}

/** @param {Pick<import('../router.js').ViewProps, 'caller' | 'query'>} props */
function EditView({ caller, query }) {
  const { data, failure, reload } = useNamed()
  const { from = 'copy' } = query
  return html`<p class="crumb"><${Link} to="/pipelines">Pipelines<//></p>
    <${Title} title=${from.startsWith('named:') ? from.slice('named:'.length) : 'New pipeline'} />
    <${Pending} of="the pipelines" data=${data} failure=${failure} again=${reload} />
    ${data !== undefined && html`<${Editor} key=${from} from=${from} named=${data.templates} caller=${caller} client=${query.client} />`}`
}
