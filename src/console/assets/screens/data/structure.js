import { useState } from 'preact/hooks'
import { Failure, Link, later, Mark, Panel, Pending, say, Table } from '../../controls.js'
import { useLoad, useStore } from '../../hooks.js'
import { html } from '../../html.js'
import { holds, holdsTable } from '../../session.js'
import { countOf, Value } from '../../values.js'
import { capabilitiesOf, changes, describe, noteChange, pathOf } from './described.js'
import { Drop, rowsOf } from './drop.js'
import { Realtime } from './realtime.js'
import { TableActs } from './table-acts.js'

const AddColumn = later('The form', () => import('./column-acts.js'), 'AddColumn')
const ChangeColumn = later('The form', () => import('./column-acts.js'), 'ChangeColumn')

/**
 * @typedef {import('./described.js').Column} Column
 * @typedef {import('./described.js').Constraint} Constraint
 * @typedef {{ of: 'add' } | { of: 'change' | 'drop', column: Column }} Open
 */

/** The columns, keys and references of a table, and what may be changed of it. @param {import('./described.js').TableViewProps} props */
export function View({ at, caller }) {
  const { data, failure, reload } = useLoad((signal) => describe(at, signal), [useStore(changes)])
  if (data === undefined) return html`<${Pending} of="the structure" failure=${failure} again=${reload} />`
  const mayWrite = data.isTable && holds(caller, at.client, 'management.tables.write')
  return html`<${Failure} of=${failure} again=${reload} />
    <${Columns} at=${at} caller=${caller} description=${data} mayWrite=${mayWrite} />
    <${Constraints} constraints=${data.constraints} />
    ${data.isTable && html`<${Realtime} at=${at} mayWrite=${mayWrite} />`}
    ${data.isTable && html`<${TableActs} at=${at} caller=${caller} rows=${data.rows} mayWrite=${mayWrite} />`}`
}

/** @param {import('./described.js').TableViewProps & { description: import('./described.js').Description, mayWrite: boolean }} props */
function Columns({ at, caller, description: { columns, constraints, rows, isTable }, mayWrite }) {
  const [open, setOpen] = useState(/** @type {Open | undefined} */ (undefined))
  const types = useLoad(
    async (signal) => (mayWrite ? (await capabilitiesOf(at.client, signal)).allowed_column_data_types : []),
    [at.client, mayWrite],
  )
  const mayEdit = mayWrite && holdsTable(caller, at, 'read') && holdsTable(caller, at, 'write')
  const mayDrop = isTable && holds(caller, at.client, 'management.columns.drop')
  const close = () => setOpen(undefined)
  const finish = (/** @type {string} */ done) => {
    close()
    say(done)
    noteChange()
  }
  /** @type {readonly import('../../controls.js').Column<Column>[]} */
  const shown = [
    {
      name: 'name',
      title: 'Name',
      cell: ({ column_name: name }) =>
        html`<strong><${Value} value=${name} /></strong> <${Keys} constraints=${constraints} name=${name} />`,
    },
    {
      name: 'type',
      title: 'Type',
      cell: ({ data_type: type }) => html`<code><${Value} value=${type} /></code>`,
    },
    {
      name: 'null',
      title: 'Null',
      cell: ({ is_nullable: is }) => (is === 'YES' ? 'allowed' : html`<${Mark}>not null<//>`),
    },
    {
      name: 'default',
      title: 'Default',
      cell: ({ column_default: text }) =>
        text === null ? html`<span class="soft">–</span>` : html`<code><${Value} value=${text} /></code>`,
    },
    {
      name: 'references',
      title: 'References',
      cell: ({ column_name: name }) =>
        html`<${References} client=${at.client} constraints=${constraints} name=${name} />`,
    },
    ...(mayEdit || mayDrop
      ? [
          {
            name: 'act',
            title: html`<span class="hidden">Act</span>`,
            cell: (/** @type {Column} */ column) =>
              html`<span class="buttons">${mayEdit && html`<button type="button" aria-label=${`Change ${column.column_name}`} onClick=${() => setOpen({ of: 'change', column })}>Change</button>`}
              ${mayDrop && html`<button type="button" class="danger" aria-label=${`Drop ${column.column_name}`} onClick=${() => setOpen({ of: 'drop', column })}>Drop</button>`}</span>`,
          },
        ]
      : []),
  ]
  const add =
    mayWrite && html`<button type="button" onClick=${() => setOpen({ of: 'add' })}>Add column</button>`
  const form = { at, types: types.data ?? [], onDone: finish, onClose: close }
  return html`<${Panel} title="Columns" note=${countOf(columns.length, 'column')} actions=${add}>
      <${Table} label="Columns of the table" columns=${shown} rows=${columns} keyOf=${(/** @type {Column} */ { column_name }) => column_name} />
    <//>
    ${open?.of === 'add' && html`<${AddColumn} ...${form} />`}
    ${open?.of === 'change' && html`<${ChangeColumn} ...${form} column=${open.column} />`}
    ${open?.of === 'drop' && html`<${DropColumn} ...${form} column=${open.column} rows=${rows} />`}`
}

/** @param {import('./column-acts.js').FormProps & { column: Column, rows: number }} props */
function DropColumn({ at, column: { column_name: name, data_type: type }, rows, onDone, onClose }) {
  const lost = `The column (${type}) is dropped with its values in ${rowsOf(rows)}, and with its indexes and constraints.`
  return html`<${Drop} title=${`Drop ${name} of ${at.table}?`} verb="Drop the column" text=${lost} client=${at.client} schema=${at.schema}
    path=${pathOf(at, `/columns/${encodeURIComponent(name)}`)} onDone=${() => onDone(`${name} was dropped`)} onClose=${onClose} />`
}

/** @param {{ constraints: readonly Constraint[], name: string }} props */
function Keys({ constraints, name }) {
  const kinds = constraints
    .filter(({ columns }) => columns.includes(name))
    .map(({ constraint_type: kind }) => kind)
  return html`${kinds.includes('PRIMARY KEY') && html`<${Mark} tone="good">key<//> `}${kinds.includes('UNIQUE') && html`<${Mark}>unique<//>`}`
}

/** @param {{ client: string, constraints: readonly Constraint[], name: string }} props */
function References({ client, constraints, name }) {
  const found = constraints.flatMap(({ columns, references }) => {
    const at = columns.indexOf(name)
    return at < 0 || references === null ? [] : [{ ...references, column: references.columns[at] }]
  })
  if (found.length === 0) return html`<span class="soft">–</span>`
  return found.map(({ table_schema: schema, table_name: table, column }) => {
    const query = { client, schema: schema === 'public' ? undefined : schema, table, view: 'structure' }
    return html`<${Link} to="/data" query=${query}><${Value} value=${`${table}.${column}`} /><//> `
  })
}

/** @type {readonly import('../../controls.js').Column<Constraint>[]} */
const CONSTRAINTS = [
  { name: 'kind', title: 'Kind', cell: ({ constraint_type: kind }) => kind.toLowerCase() },
  { name: 'name', title: 'Name', cell: ({ constraint_name: name }) => html`<${Value} value=${name} />` },
  {
    name: 'definition',
    title: 'Definition',
    cell: ({ definition }) => html`<code><${Value} value=${definition} /></code>`,
  },
]

/** @param {{ constraints: readonly Constraint[] }} props */
const Constraints = ({ constraints }) => html`<${Panel} title="Keys and constraints">
    <${Table} label="Keys and constraints of the table" columns=${CONSTRAINTS} rows=${constraints} empty="None."
      keyOf=${(/** @type {Constraint} */ { constraint_name }) => constraint_name} />
  <//>`
