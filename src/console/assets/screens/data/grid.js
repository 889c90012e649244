import { useEffect, useState } from 'preact/hooks'
import { ask } from '../../api.js'
import { Failure, later, Pager, Pending } from '../../controls.js'
import { useAct, useExactCount, useLoad, useStore } from '../../hooks.js'
import { html } from '../../html.js'
import { goWith } from '../../router.js'
import { holdsTable } from '../../session.js'
import { counted, countOf } from '../../values.js'
import { isWide, keyOf, readStructure, whyReadOnly } from './edit.js'
import { StrayEditor } from './edit-cell.js'
import { begin, change, editOf, edits, end, isChanged, save, tableId, UndoButton } from './edit-state.js'
import { countIn, FEW, Filters, filtersIn, isTooLarge, sizeOf, usePage, WIDTH } from './grid-page.js'
import { GridTable } from './grid-table.js'

/**
 * @typedef {import('./edit.js').Row} Row
 * @typedef {import('./grid-page.js').ShownColumn} ShownColumn
 * @typedef {{ caller: import('../../session.js').Caller, query: import('../../router.js').Query }} Shown
 */

const ExportDialog = later('The export', () => import('./export.js'), 'ExportDialog')
const InsertDialog = later('The form', () => import('./insert.js'), 'InsertDialog')
const Live = later('Live', () => import('./live.js'), 'Live')
const RowDialog = later('The row', () => import('./relations.js'), 'RowDialog')

/** The rows of a table, read and written through the gateway. @param {Shown & import('./edit.js').Place} props */
export function Grid({ caller, client, schema, table, query }) {
  const [place] = useState({ client, schema, table })
  const { data, failure, reload } = useLoad((signal) => readStructure(place, signal), [place])
  if (failure !== undefined || data === undefined)
    return html`<${Pending} of="the table" failure=${failure} again=${reload} />`
  return html`<${Rows} caller=${caller} place=${place} structure=${data} query=${query} />`
}

/** @param {Shown & { place: import('./edit.js').Place, structure: import('./edit.js').Structure }} props */
function Rows({ caller, place, structure, query }) {
  const id = tableId(place)
  const filters = filtersIn(query.where)
  const [isExact, countExactly] = useExactCount(query.where ?? '')
  const page = usePage(place, structure, query, { filters, isExact })
  const { data, rows, marks, patch, failure, reload } = page
  const [selected, select] = useState(/** @type {ReadonlySet<string>} */ (new Set()))
  const [looked, look] = useState(/** @type {Row | undefined} */ (undefined))
  const [dialog, setDialog] = useState(/** @type {'insert' | 'export' | undefined} */ (undefined))
  const removing = useAct()
  const edit = useStore(edits)[id]
  useSeen(id, structure.key, rows)

  const readOnly = whyReadOnly(caller, place, structure)
  const isEditable = (/** @type {ShownColumn | undefined} */ column) =>
    readOnly === undefined && column?.is_writable === true
  const mayPick = structure.key.length > 0 && structure.isText && holdsTable(caller, place, 'delete')
  /** One cell is open at a time: the other one is saved first, or stays open. @param {Row} row @param {ShownColumn} column */
  const open = async (row, column) => {
    if (!isEditable(column) || !(await finish())) return
    const whole = /** @type {import('./edit.js').Column} */ (column)
    begin(id, structure.key, row, whole, isWide(whole, row[column.column_name] ?? null))
  }
  const finish = async () => {
    const edit = editOf(id)
    if (edit === undefined) return true
    if (isChanged(edit)) return save(place, structure, patch)
    end(id)
    return true
  }
  const acts = {
    save: () => void save(place, structure, patch),
    overwrite: () => void save(place, structure, patch, { overwrites: true }),
    cancel: () => end(id),
    saveAndGo: async (/** @type {1 | -1} */ step) => {
      const edit = editOf(id)
      if (edit === undefined) return
      const next = nextCell(structure, data?.columns ?? [], page.rowsNow(), edit, step, isEditable)
      if (!(await save(place, structure, patch))) return
      const row = page.rowsNow()[next?.index ?? -1]
      // A wide one opens a dialog, which nobody has asked for.
      if (
        next !== undefined &&
        row !== undefined &&
        !isWide(next.column, row[next.column.column_name] ?? null)
      )
        begin(id, structure.key, row, next.column, false)
    },
  }
  const remove = async (/** @type {readonly Row[]} */ gone) => {
    /** @type {typeof import('./remove.js') | undefined} */
    let removal
    await removing.run(async () => (removal = await import('./remove.js')))
    if (removal === undefined || gone.length === 0) return
    const { deletionOf, removeRows } = removal
    if (!(await ask({ kind: 'consent', ...(await deletionOf(place, structure, gone)) }))) return
    if (await removing.run(() => removeRows(place, structure, gone))) select(new Set())
    reload()
  }
  const chosen = rows.filter((row) => selected.has(keyOf(structure.key, row)))
  const mayInsert = structure.isText && holdsTable(caller, place, 'write')
  const close = () => setDialog(undefined)
  const shown = data !== undefined && edit !== undefined && isShown(data.columns, structure.key, rows, edit)
  return html`<div class="grid">
    <${Filters} filters=${filters} columns=${structure.columns ?? data?.columns ?? []} />
    <div class="row bar">
      ${mayInsert && html`<button type="button" onClick=${() => setDialog('insert')}>Insert row</button>`}
      ${mayPick && chosen.length > 0 && html`<button type="button" class="danger" disabled=${removing.isBusy} onClick=${() => remove(chosen)}>Delete ${countOf(chosen.length, 'row')}</button>`}
      <${UndoButton} table=${id} onDone=${reload} />
      <button type="button" disabled=${data === undefined} onClick=${() => setDialog('export')}>Export</button>
      ${structure.isLive && html`<${Live} place=${place} structure=${structure} filters=${filters} rows=${rows} reload=${reload} />`}
    </div>
    <${Failure} of=${removing.failure} />
    ${readOnly !== undefined && data !== undefined && html`<p class="fine">${readOnly}</p>`}
    <${Pending} of="the rows" data=${data} failure=${failure} again=${reload} />
    ${isTooLarge(failure) && sizeOf(query) !== FEW && html`<p><button type="button" onClick=${() => goWith({ rows: FEW, offset: undefined })}>Show ${FEW} rows a page</button></p>`}
    ${edit !== undefined && data !== undefined && !shown && html`<${StrayEditor} table=${id} keyNames=${structure.key} edit=${edit} acts=${acts} />`}
    ${
      data !== undefined &&
      html`<${Width} columns=${structure.columns ?? data.columns} query=${query} />
      <${GridTable} place=${place} structure=${structure} table=${id} page=${data} rows=${rows} marks=${marks} query=${query} isBusy=${page.isLoading}
        selected=${selected} select=${select} mayPick=${mayPick} isEditable=${isEditable} open=${open} acts=${acts} remove=${remove} look=${look} />
      <div class="row"><${Pager} shown=${rows.length} offset=${countIn(query.offset)} limit=${sizeOf(query)} total=${data.total} isEstimated=${!isExact} hasMore=${data.hasMore} />
        ${!isExact && html`<button type="button" class="plain" onClick=${countExactly}>Count exactly</button>`}
        <button type="button" class="plain" onClick=${reload}>Read again</button></div>
      <p class="fine" id="grid-keys">${readOnly === undefined && 'Enter edits a cell, Tab saves it and goes on, Escape leaves it as it was. '}${mayPick && 'Space selects a row, Delete deletes. '}Arrows move, Ctrl+C copies a cell, Ctrl+Enter opens the row it refers to, Shift+Enter shows the whole row.</p>`
    }
    ${dialog === 'insert' && html`<${InsertDialog} place=${place} structure=${structure} onClose=${close} onDone=${reload} />`}
    ${dialog === 'export' && html`<${ExportDialog} place=${place} structure=${structure} query=${query} filters=${filters} total=${data?.total ?? 0} onClose=${close} />`}
    ${looked !== undefined && html`<${RowDialog} place=${place} structure=${structure} row=${looked} onClose=${() => look(undefined)} />`}
  </div>`
}

/** Tells the open cell what its row has by now. @param {string} id @param {readonly string[]} key @param {readonly Row[]} rows */
function useSeen(id, key, rows) {
  useEffect(() => {
    const edit = editOf(id)
    const row = edit && rows.find((one) => keyOf(key, one) === edit.id)
    if (edit === undefined || row === undefined || edit.isBusy) return
    const seen = row[edit.column.column_name]
    if (seen !== undefined && seen !== edit.seen) change(id, { seen })
  }, [rows])
}

/** @param {readonly ShownColumn[]} columns @param {readonly string[]} key @param {readonly Row[]} rows @param {import('./edit-state.js').Edit} edit */
const isShown = (columns, key, rows, edit) =>
  columns.some(({ column_name }) => column_name === edit.column.column_name) &&
  rows.some((row) => keyOf(key, row) === edit.id)

/**
 * The cell that Tab goes on to: the next one that can be edited, in this row or another.
 * @param {import('./edit.js').Structure} structure
 * @param {readonly ShownColumn[]} columns
 * @param {readonly Row[]} rows
 * @param {import('./edit-state.js').Edit} from
 * @param {1 | -1} step
 * @param {(column: ShownColumn) => boolean} isEditable
 */
function nextCell({ key }, columns, rows, from, step, isEditable) {
  const editable = /** @type {readonly import('./edit.js').Column[]} */ (columns.filter(isEditable))
  const at = rows.findIndex((row) => keyOf(key, row) === from.id)
  const number = editable.findIndex(({ column_name }) => column_name === from.column.column_name)
  if (at < 0 || number < 0) return undefined
  const next = at * editable.length + number + step
  const column = editable[next % editable.length]
  return column && { index: Math.floor(next / editable.length), column }
}

/** Which columns of a wide table are shown. @param {{ columns: readonly unknown[], query: import('../../router.js').Query }} props */
function Width({ columns, query }) {
  const from = countIn(query.columns)
  const move = (/** @type {number} */ by) => () => goWith({ columns: from + by <= 0 ? undefined : from + by })
  if (columns.length <= WIDTH) return null
  return html`<p class="row"><span>Columns ${counted(from + 1)}–${counted(Math.min(columns.length, from + WIDTH))} of ${counted(columns.length)}</span>
    <button type="button" disabled=${from === 0} onClick=${move(-WIDTH)}>Left</button>
    <button type="button" disabled=${from + WIDTH >= columns.length} onClick=${move(WIDTH)}>Right</button></p>`
}
