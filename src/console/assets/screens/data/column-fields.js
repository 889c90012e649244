import { useId } from 'preact/hooks'
import { Check, Field, take } from '../../controls.js'
import { html } from '../../html.js'

/**
 * A column that is being written. Texts are as typed; an empty one is absent.
 * @typedef {{ name: string, type: string, fallback: string, isRequired: boolean, isPrimary: boolean, isUnique: boolean, references: string, onDelete: string }} ColumnDraft
 */

/** @type {ColumnDraft} */
export const NEW_COLUMN = {
  name: '',
  type: 'text',
  fallback: '',
  isRequired: false,
  isPrimary: false,
  isUnique: false,
  references: '',
  onDelete: 'no action',
}

const DELETE_ACTIONS = ['no action', 'restrict', 'cascade', 'set null', 'set default']

/** As the API takes it. @param {ColumnDraft} draft */
export function definitionOf({
  name,
  type,
  fallback,
  isRequired,
  isPrimary,
  isUnique,
  references,
  onDelete,
}) {
  return {
    name,
    data_type: type,
    nullable: !isRequired && !isPrimary,
    ...(fallback !== '' && { default_expression: fallback }),
    ...(isPrimary && { primary_key: true }),
    ...(isUnique && { unique: true }),
    ...(references !== '' && { references: referenceOf(references, onDelete) }),
  }
}

/** `table.column`, or `schema.table.column`. @param {string} text @param {string} onDelete */
function referenceOf(text, onDelete) {
  const dot = text.lastIndexOf('.')
  if (dot < 1) throw new Error('A reference is written as table.column, for example authors.id.')
  return { table: text.slice(0, dot).trim(), column: text.slice(dot + 1).trim(), on_delete: onDelete }
}

/**
 * Name, type and default of a column.
 * @param {{ draft: ColumnDraft, types: readonly string[], change: (part: Partial<ColumnDraft>) => void, isFirst?: boolean }} props
 */
export function BasicFields({ draft, types, change, isFirst = false }) {
  const id = useId()
  return html`<${Field} label="Name" required maxlength="63" autocomplete="off" spellcheck=${false} autofocus=${isFirst}
      value=${draft.name} onInput=${take((name) => change({ name }))} />
    <${Field} label="Type" required list=${id} autocomplete="off" spellcheck=${false} value=${draft.type}
      onInput=${take((type) => change({ type }))} />
    <datalist id=${id}>${types.map((type) => html`<option value=${type} />`)}</datalist>
    <${Field} label="Default" autocomplete="off" spellcheck=${false} placeholder="none: null" value=${draft.fallback}
      onInput=${take((fallback) => change({ fallback }))} />`
}

/**
 * All of a new column.
 * @param {Parameters<typeof BasicFields>[0]} props
 */
export function ColumnFields(props) {
  const { draft, change } = props
  const flag = (/** @type {string} */ label, /** @type {'isRequired' | 'isPrimary' | 'isUnique'} */ name) =>
    html`<${Check} label=${label} checked=${draft[name]} onChange=${() => change({ [name]: !draft[name] })} />`
  return html`<div class="column-fields">
      <${BasicFields} ...${props} />
      <${Field} label="References" autocomplete="off" spellcheck=${false} placeholder="table.column" value=${draft.references}
        onInput=${take((references) => change({ references }))} />
      ${
        draft.references !== '' &&
        html`<${Field} label="When that row is deleted" value=${draft.onDelete} onChange=${take((onDelete) => change({ onDelete }))}>
          ${DELETE_ACTIONS.map((action) => html`<option value=${action}>${action}</option>`)}
        <//>`
      }
    </div>
    <p class="row">${flag('Primary key', 'isPrimary')} ${flag('Not null', 'isRequired')} ${flag('Unique', 'isUnique')}</p>`
}

/** Below every form with a default. */
export const DEFAULT_HINT = html`<p class="hint">A default is a literal or a function: <code>0</code>, <code>'new'</code>, <code>now()</code>, <code>gen_random_uuid()</code>.</p>`
