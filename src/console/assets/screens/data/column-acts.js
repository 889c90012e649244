import { useState } from 'preact/hooks'
import { ActForm, Check } from '../../controls.js'
import { html } from '../../html.js'
import { BasicFields, ColumnFields, DEFAULT_HINT, definitionOf, NEW_COLUMN } from './column-fields.js'
import { edit } from './described.js'

/**
 * @typedef {import('./described.js').At} At
 * @typedef {import('./described.js').Column} Column
 * @typedef {{ at: At, types: readonly string[], onDone: (done: string) => void, onClose: () => void }} FormProps
 */

/** @param {FormProps} props */
export function AddColumn({ at, types, onDone, onClose }) {
  const [draft, setDraft] = useState(NEW_COLUMN)
  const change = (/** @type {Partial<typeof draft>} */ part) => setDraft((before) => ({ ...before, ...part }))
  const work = async () => {
    await edit(at, [{ operation: 'add_column', column: definitionOf(draft) }])
    onDone(`${draft.name} was added`)
  }
  return html`<${ActForm} title=${`New column of ${at.table}`} verb="Add column" onClose=${onClose} work=${work}>
    <${ColumnFields} draft=${draft} types=${types} change=${change} isFirst />
    ${DEFAULT_HINT}
  <//>`
}

/** @param {FormProps & { column: Column }} props */
export function ChangeColumn({ at, types, column, onDone, onClose }) {
  const [draft, setDraft] = useState({
    ...NEW_COLUMN,
    name: column.column_name,
    type: column.data_type,
    fallback: column.column_default ?? '',
    isRequired: column.is_nullable === 'NO',
  })
  const change = (/** @type {Partial<typeof draft>} */ part) => setDraft((before) => ({ ...before, ...part }))
  const work = async () => {
    const operations = editsOf(column, draft)
    if (operations.length === 0) return onClose()
    await edit(at, operations)
    onDone(`${draft.name} was changed`)
  }
  return html`<${ActForm} title=${`Column ${column.column_name}`} verb="Change column" onClose=${onClose} work=${work}>
    <${BasicFields} draft=${draft} types=${types} change=${change} isFirst />
    <p><${Check} label="Not null" checked=${draft.isRequired} onChange=${() => change({ isRequired: !draft.isRequired })} /></p>
    ${DEFAULT_HINT}
    <p class="hint">All of it or nothing. Another type reads every value anew: one that does not fit refuses the change, and none is cut off. Rights, routes and programs that use the old name do not follow a new one.</p>
  <//>`
}

/**
 * The operations that lead from the column to the draft. A default is dropped before the type changes, and its name comes last.
 * @param {Column} column
 * @param {import('./column-fields.js').ColumnDraft} draft
 */
export function editsOf(
  { column_name: column, data_type: type, column_default: fallback, is_nullable },
  draft,
) {
  const isRequired = is_nullable === 'NO'
  const isOtherDefault = draft.fallback !== (fallback ?? '')
  const operations = []
  if (isOtherDefault && fallback !== null) operations.push({ operation: 'drop_default' })
  if (draft.type !== type) operations.push({ operation: 'alter_type', data_type: draft.type })
  if (isOtherDefault && draft.fallback !== '')
    operations.push({ operation: 'set_default', default_expression: draft.fallback })
  if (draft.isRequired !== isRequired)
    operations.push({ operation: draft.isRequired ? 'set_not_null' : 'drop_not_null' })
  if (draft.name !== column) operations.push({ operation: 'rename_column', new_name: draft.name })
  return operations.map((operation) => ({ ...operation, column_name: column }))
}
