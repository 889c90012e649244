import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Heading } from '../../controls.js'
import { useHadFocus, useStore } from '../../hooks.js'
import { html } from '../../html.js'
import { addressOf, go } from '../../router.js'
import { Value } from '../../values.js'
import { isNumber, keyOf, nameOf } from './edit.js'
import { CellEditor } from './edit-cell.js'
import { edits } from './edit-state.js'

/** Characters of a cell. */
const CELL = 160

/**
 * @typedef {import('./edit.js').Row} Row
 * @typedef {import('./grid-page.js').ShownColumn} ShownColumn
 * @typedef {{ place: import('./edit.js').Place, structure: import('./edit.js').Structure, table: string, page: import('./grid-page.js').Page, rows: readonly Row[], marks: ReadonlyMap<string, ReadonlySet<string>>, query: import('../../router.js').Query, isBusy: boolean, selected: ReadonlySet<string>, select: (ids: ReadonlySet<string>) => void, mayPick: boolean, isEditable: (column: ShownColumn | undefined) => boolean, open: (row: Row, column: ShownColumn) => void, acts: import('./edit-cell.js').Acts, remove: (rows: readonly Row[]) => void, look: (row: Row) => void }} Props
 */

/** The rows as a grid: one cell has the focus, and keys move it. @param {Props} props */
export function GridTable(props) {
  const {
    place,
    structure,
    table,
    page,
    rows,
    marks,
    query,
    isBusy,
    selected,
    select,
    mayPick,
    isEditable,
    open,
    acts,
  } = props
  const { columns } = page
  const edit = useStore(edits)[table]
  const [at, setAt] = useState({ row: 0, column: 0 })
  const grid = useRef(/** @type {HTMLTableElement | null} */ (null))
  const hadFocus = useHadFocus(grid)
  const current = {
    row: Math.min(at.row, Math.max(0, rows.length - 1)),
    column: Math.min(at.column, columns.length - 1),
  }
  const cellAt = (/** @type {{ row: number, column: number }} */ { row, column }) =>
    /** @type {HTMLElement | null | undefined} */ (
      grid.current?.querySelector(`[data-at="${row}:${column}"]`)
    )
  const ids =
    structure.key.length === 0
      ? rows.map((_, index) => String(index))
      : rows.map((row) => keyOf(structure.key, row))

  useEffect(() => {
    // A save, or rows that moved, took the element that had it.
    if (hadFocus.current && edit === undefined && document.activeElement === document.body)
      cellAt(current)?.focus()
  })

  /** @param {number} index */
  const toggle = (index) => {
    const id = ids[index]
    if (!mayPick || id === undefined) return
    const next = new Set(selected)
    if (!next.delete(id)) next.add(id)
    select(next)
  }
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const place = placeOf(event.target)
    if (place === undefined || !(event.target instanceof HTMLTableCellElement)) return
    const to = moveBy(event, place, { rows: rows.length, columns: columns.length })
    if (to !== undefined) cellAt(to)?.focus()
    else if (!act(event, place)) return
    event.preventDefault()
  }
  /** True: the key means something here. @param {KeyboardEvent} event @param {{ row: number, column: number }} place */
  const act = (event, { row: index, column: number }) => {
    const [row, column] = [rows[index], columns[number]]
    if (row === undefined || column === undefined) return false
    const isPlain = !isModified(event) && !event.shiftKey
    if (isPlain && (event.key === 'Enter' || event.key === 'F2')) open(row, column)
    else if (event.key === 'Enter' && event.shiftKey) props.look(row)
    else if (event.key === 'Enter') follow(row, column)
    else if (isPlain && event.key === ' ') toggle(index)
    else if (event.key === 'a' && (event.ctrlKey || event.metaKey) && mayPick) select(new Set(ids))
    else if (isPlain && event.key === 'Delete' && mayPick)
      props.remove(selected.size > 0 ? rows.filter((_, place) => selected.has(ids[place] ?? '')) : [row])
    else return false
    return true
  }
  /** @param {Row} row @param {ShownColumn} column */
  const follow = (row, { column_name: name }) => {
    const reference = referenceIn(structure, name, row)
    if (reference !== undefined) go(addressOfReference(place.client, reference, row))
  }
  const copy = (/** @type {ClipboardEvent} */ event) => {
    const place = placeOf(event.target)
    if (
      place === undefined ||
      !(event.target instanceof HTMLTableCellElement) ||
      String(getSelection()) !== ''
    )
      return
    event.clipboardData?.setData(
      'text/plain',
      rows[place.row]?.[columns[place.column]?.column_name ?? ''] ?? '',
    )
    event.preventDefault()
  }
  const enter = (/** @type {FocusEvent} */ { target }) => {
    const place = placeOf(target)
    if (place !== undefined && (place.row !== at.row || place.column !== at.column)) setAt(place)
  }
  const doubleClick = (/** @type {MouseEvent} */ { target }) => {
    const place = placeOf(target)
    const [row, column] = [rows[place?.row ?? -1], columns[place?.column ?? -1]]
    if (row !== undefined && column !== undefined && !isField(target)) open(row, column)
  }
  const all = ids.length > 0 && ids.every((id) => selected.has(id))

  return html`<div class="scroll" aria-busy=${isBusy}>
    <table ref=${grid} role="grid" aria-label="Rows" aria-multiselectable=${mayPick} aria-describedby="grid-keys"
      onKeyDown=${press} onCopy=${copy} onFocusIn=${enter} onDblClick=${doubleClick}>
      <thead><tr>
        ${mayPick && html`<th scope="col" class="pick"><input type="checkbox" aria-label="Select all rows of this page" checked=${all} onChange=${() => select(new Set(all ? [] : ids))} /></th>`}
        ${columns.map(
          (column) =>
            html`<${Heading} key=${column.column_name} sort=${query.sort} dir=${query.dir} column=${{
              ...{ name: column.column_name, sorts: true, isNumber: isRight(column) },
              title: html`<${Value} value=${column.column_name} most=${63} /> <span class="type">${column.data_type}</span>`,
            }} />`,
        )}
      </tr></thead>
      <tbody>${rows.map((row, index) => {
        const id = ids[index] ?? ''
        return html`<tr key=${id} aria-selected=${mayPick ? selected.has(id) : undefined}>
          ${mayPick && html`<td class="pick"><input type="checkbox" tabindex="-1" aria-label=${`Select the row ${nameOf(structure.key, row)}`} checked=${selected.has(id)} onChange=${() => toggle(index)} /></td>`}
          ${columns.map((column, number) => {
            const isOpen = edit?.id === id && edit.column.column_name === column.column_name
            const isCurrent = current.row === index && current.column === number
            return html`<td key=${column.column_name} data-at=${`${index}:${number}`} tabindex=${isCurrent ? 0 : -1}
              aria-readonly=${!isEditable(column)} class=${classesOf(column, isOpen, marks.get(id))}>${
                isOpen && edit !== undefined
                  ? html`<${CellEditor} table=${table} edit=${edit} acts=${acts} />`
                  : html`<${Cell} client=${place.client} structure=${structure} row=${row} name=${column.column_name} />`
              }</td>`
          })}</tr>`
      })}</tbody>
    </table>
    ${rows.length === 0 && html`<p class="empty">${query.where === undefined && query.offset === undefined ? 'No row.' : 'No row matches.'}</p>`}
  </div>`
}

/** @param {ShownColumn} column */
const isRight = ({ base_type: type }) =>
  type !== undefined && isNumber(/** @type {any} */ ({ base_type: type }))

/** @param {ShownColumn} column @param {boolean} isOpen @param {ReadonlySet<string> | undefined} changed */
const classesOf = (column, isOpen, changed) =>
  [isRight(column) && !isOpen && 'numeric', isOpen && 'open', changed?.has(column.column_name) && 'changed']
    .filter(Boolean)
    .join(' ')

/** @param {EventTarget | null} target */
function placeOf(target) {
  const cell = target instanceof Element ? target.closest('td[data-at]') : null
  const [row, column] = (cell?.getAttribute('data-at') ?? '').split(':').map(Number)
  return row === undefined || column === undefined ? undefined : { row, column }
}

/** @param {EventTarget | null} target */
const isField = (target) =>
  target instanceof Element && target.closest('input, select, textarea, button, a, dialog') !== null

/** A table may have thousands of them, and each letter that is typed in one draws the grid again. @param {{ client: string, structure: import('./edit.js').Structure, row: Row, name: string }} props */
function Cell({ client, structure, row, name }) {
  return useMemo(() => {
    const reference = referenceIn(structure, name, row)
    return html`<${Value} value=${row[name]} most=${CELL} />${
      reference !== undefined &&
      html` <a class="reference" tabindex="-1" href=${addressOfReference(client, reference, row)} aria-label=${`Open the row of ${reference.table}`} title=${`The row of ${reference.table} (Ctrl+Enter)`}>→</a>`
    }`
  }, [client, structure, row, name])
}

/**
 * The foreign key of a cell whose row refers to another one.
 * @param {import('./edit.js').Structure} structure
 * @param {string} name
 * @param {Row} row
 */
export const referenceIn = ({ references }, name, row) =>
  references.find(
    ({ columns }) => columns.includes(name) && columns.every((one) => typeof row[one] === 'string'),
  )

/** @param {string} client @param {import('./edit.js').Reference} reference @param {Row} row */
export const addressOfReference = (client, { schema, table, columns, target }, row) =>
  rowsWhere(
    client,
    schema,
    table,
    target.map((name, index) => [name, row[columns[index] ?? '']]),
  )

/**
 * @param {string} client
 * @param {string} schema
 * @param {string} table
 * @param {readonly (readonly [column: string, value: string | null | undefined])[]} values
 */
export const rowsWhere = (client, schema, table, values) =>
  addressOf('/data', {
    ...{ client, schema: schema === 'public' ? undefined : schema, table },
    where: JSON.stringify(values.map(([name, value]) => [name, 'eq', value])),
  })

/**
 * Moves within a grid by its keys.
 * @param {KeyboardEvent} event
 * @param {{ row: number, column: number }} at
 * @param {{ rows: number, columns: number }} size
 * @returns {{ row: number, column: number } | undefined}
 */
export function moveBy({ key, ctrlKey, metaKey, altKey }, { row, column }, { rows, columns }) {
  if (altKey) return undefined
  const isFar = ctrlKey || metaKey
  const last = { row: rows - 1, column: columns - 1 }
  const within = (/** @type {number} */ to, /** @type {number} */ most) => Math.max(0, Math.min(most, to))
  switch (key) {
    case 'ArrowUp':
      return { row: isFar ? 0 : within(row - 1, last.row), column }
    case 'ArrowDown':
      return { row: isFar ? last.row : within(row + 1, last.row), column }
    case 'ArrowLeft':
      return { row, column: isFar ? 0 : within(column - 1, last.column) }
    case 'ArrowRight':
      return { row, column: isFar ? last.column : within(column + 1, last.column) }
    case 'Home':
      return { row: isFar ? 0 : row, column: 0 }
    case 'End':
      return { row: isFar ? last.row : row, column: last.column }
    case 'PageUp':
      return { row: within(row - 10, last.row), column }
    case 'PageDown':
      return { row: within(row + 10, last.row), column }
    default:
      return undefined
  }
}

/** @param {KeyboardEvent} event */
export const isModified = ({ ctrlKey, metaKey, altKey }) => ctrlKey || metaKey || altKey
