import { useState } from 'preact/hooks'
import { ask, call } from '../../api.js'
import { ActForm, Check, Failure, Field, Mark, Panel, Pending, say, Table, take } from '../../controls.js'
import { useAct, useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { holds } from '../../session.js'
import { countOf, Value } from '../../values.js'
import { capabilitiesOf, describe, whichOf } from './described.js'

/** @typedef {{ index_name: string, method: string, is_unique: boolean, is_primary: boolean, is_valid: boolean, columns: readonly string[], definition: string }} Index */

/** The indexes of a table. @param {import('./described.js').TableViewProps} props */
export function View({ at, caller }) {
  const { client, schema, table } = at
  const { data, failure, reload } = useLoad(async (signal) => {
    const [{ indexes }, description] = await Promise.all([
      call('/schema/indexes', { client, query: whichOf(at), signal }),
      describe(at, signal),
    ])
    return { indexes: /** @type {readonly Index[]} */ (indexes), ...description }
  }, [])
  const [isAdding, setAdding] = useState(false)
  const act = useAct()
  const mayDrop = holds(caller, client, 'management.indexes.drop')
  const ofConstraints = new Set(data?.constraints.map(({ constraint_name: name }) => name))
  const drop = async (/** @type {Index} */ { index_name: name, is_unique: isUnique }) => {
    const lost = isUnique ? ' Equal values are allowed from then on.' : ''
    const text = `Reads that use it become slower until it is built again.${lost} No row is lost.`
    const title = `Drop the index ${name}?`
    if (!(await ask({ kind: 'consent', isDangerous: true, title, text, verb: 'Drop the index' }))) return
    await act.run(async () => {
      const path = `/management/indexes/${encodeURIComponent(name)}`
      await call(path, { method: 'DELETE', client, body: { schema_name: schema } })
      say(`${name} was dropped`)
      reload()
    })
  }
  const finish = (/** @type {string} */ name) => {
    setAdding(false)
    say(`${name} was created`)
    reload()
  }
  /** @type {readonly import('../../controls.js').Column<Index>[]} */
  const columns = [
    ...COLUMNS,
    {
      name: 'act',
      title: html`<span class="hidden">Act</span>`,
      cell: (index) =>
        ofConstraints.has(index.index_name)
          ? html`<span class="soft">of a constraint</span>`
          : mayDrop &&
            html`<button type="button" class="danger" aria-label=${`Drop ${index.index_name}`} disabled=${act.isBusy} onClick=${() => drop(index)}>Drop</button>`,
    },
  ]
  const add =
    data?.isTable &&
    holds(caller, client, 'management.indexes.write') &&
    html`<button type="button" onClick=${() => setAdding(true)}>New index</button>`
  return html`<${Panel} title="Indexes" note=${data && countOf(data.indexes.length, 'index', 'indexes')} actions=${add}>
      <${Pending} of="the indexes" data=${data} failure=${failure} again=${reload} />
      <${Failure} of=${act.failure} />
      ${
        data !== undefined &&
        html`<${Table} label="Indexes of the table" columns=${columns} rows=${data.indexes} empty="No index: every search reads the whole table."
          keyOf=${(/** @type {Index} */ { index_name: name }) => name} />`
      }
    <//>
    ${isAdding && data !== undefined && html`<${NewIndex} at=${at} columns=${data.columns} table=${table} onDone=${finish} onClose=${() => setAdding(false)} />`}`
}

/** @type {readonly import('../../controls.js').Column<Index>[]} */
const COLUMNS = [
  {
    name: 'name',
    title: 'Name',
    cell: ({ index_name: name, is_primary: isPrimary, is_unique: isUnique, is_valid: isValid }) =>
      html`<strong><${Value} value=${name} /></strong> ${isPrimary && html`<${Mark} tone="good">key<//> `}${isUnique && !isPrimary && html`<${Mark}>unique<//> `}${!isValid && html`<${Mark} tone="bad">not valid<//>`}`,
  },
  { name: 'method', title: 'Method', cell: ({ method }) => method },
  {
    name: 'columns',
    title: 'Columns',
    cell: ({ columns }) => html`<${Value} value=${columns.join(', ')} />`,
  },
  {
    name: 'definition',
    title: 'Definition',
    cell: ({ definition }) => html`<code><${Value} value=${definition} /></code>`,
  },
]

/** @param {{ at: import('./described.js').At, columns: readonly import('./described.js').Column[], onDone: (name: string) => void, onClose: () => void }} props */
function NewIndex({ at: { client, schema, table }, columns, onDone, onClose }) {
  const [chosen, setChosen] = useState(/** @type {readonly string[]} */ ([]))
  const [method, setMethod] = useState('btree')
  const [unique, setUnique] = useState(false)
  const [name, setName] = useState('')
  const { data } = useLoad((signal) => capabilitiesOf(client, signal), [client])
  const turn = (/** @type {string} */ column) =>
    setChosen(chosen.includes(column) ? chosen.filter((one) => one !== column) : [...chosen, column])
  const work = async () => {
    if (chosen.length === 0) throw new Error('Choose at least one column.')
    const body = {
      ...{ schema_name: schema, table_name: table, columns: chosen, unique, method },
      ...(name !== '' && { index_name: name }),
    }
    const made = await call('/management/indexes', { method: 'POST', client, body })
    onDone(made.data.index_name)
  }
  return html`<${ActForm} title=${`New index of ${table}`} verb="Create index" onClose=${onClose} work=${work}>
    <fieldset class="choices"><legend>Columns, in the order of choosing</legend>
      ${columns.map(({ column_name: column }) => html`<${Check} label=${html`<${Value} value=${column} most=${63} />${chosen.includes(column) && ` (${chosen.indexOf(column) + 1})`}`} checked=${chosen.includes(column)} onChange=${() => turn(column)} />`)}
    </fieldset>
    <${Field} label="Method" value=${method} onChange=${take(setMethod)}>
      ${(data?.allowed_index_methods ?? ['btree']).map((one) => html`<option value=${one}>${one}</option>`)}
    <//>
    <p><${Check} label="Unique: no two rows have equal values" checked=${unique} onChange=${() => setUnique(!unique)} /></p>
    <${Field} label="Name" maxlength="63" autocomplete="off" spellcheck=${false} placeholder=${`${[table, ...chosen].join('_')}_idx`} value=${name} onInput=${take(setName)} />
    <p class="hint">Writes to the table wait until it is built, at most 50 seconds.</p>
  <//>`
}
