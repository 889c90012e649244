import { say } from '../../controls.js'
import { countOf } from '../../values.js'
import { nameOf, refused } from './edit.js'
import { remember, tableId } from './edit-state.js'
import { referrers } from './relations.js'
import { deleteRows, insertRows, isWhole } from './write-rows.js'

/**
 * @typedef {import('./edit.js').Place} Place
 * @typedef {import('./edit.js').Structure} Structure
 * @typedef {import('./edit.js').Row} Row
 */

/**
 * What a deletion says before it is done.
 * @param {Place} place
 * @param {Structure} structure
 * @param {readonly Row[]} rows
 * @returns {Promise<Omit<Extract<import('../../api.js').Question, { kind: 'consent' }>, 'kind'>>}
 */
export async function deletionOf(place, structure, rows) {
  const [first] = rows
  const which =
    rows.length === 1 && first !== undefined ? nameOf(structure.key, first) : countOf(rows.length, 'row')
  // Who may not read them all is asked without.
  const others = await referrers(place).catch(() => [])
  const lost = others
    .filter(({ definition }) => /ON DELETE CASCADE/.test(definition))
    .map(({ table }) => table)
  const emptied = others
    .filter(({ definition }) => /ON DELETE SET/.test(definition))
    .map(({ table }) => table)
  const notes = [
    rows.length === 1
      ? 'The row is deleted if it is as it is shown.'
      : 'Those rows are deleted that are as they are shown.',
    ...(lost.length > 0
      ? [
          `Rows of ${[...new Set(lost)].join(', ')} that refer to them go with them, and no undo brings these back.`,
        ]
      : []),
    ...(emptied.length > 0 ? [`Rows of ${[...new Set(emptied)].join(', ')} lose their reference.`] : []),
    ...(isWhole(structure) ? [] : ['This cannot be undone here, since the table has more than 200 columns.']),
  ]
  return {
    title: `Delete ${which} of ${place.table}?`,
    text: notes.join(' '),
    verb: `Delete ${countOf(rows.length, 'row')}`,
    isDangerous: true,
  }
}

/**
 * Deletes rows that are as they are shown, and tells of the others.
 * @param {Place} place
 * @param {Structure} structure
 * @param {readonly Row[]} rows
 */
export async function removeRows(place, structure, rows) {
  const deleted = await deleteRows(place, structure, rows)
  const left = rows.length - deleted.length
  if (deleted.length > 0) {
    say(`${countOf(deleted.length, 'row was', 'rows were')} deleted`)
    if (isWhole(structure)) rememberDelete(place, structure, deleted)
  }
  if (left > 0)
    throw refused(
      'changed_since',
      `${countOf(left, 'row has', 'rows have')} been changed or deleted by somebody else since, or a policy keeps you from deleting.`,
    )
}

/** @param {Place} place @param {Structure} structure @param {readonly Row[]} rows */
function rememberDelete(place, structure, rows) {
  const which = countOf(rows.length, 'row')
  const isComputed = structure.columns?.some(
    (column) => structure.key.includes(column.column_name) && !column.is_writable,
  )
  remember(tableId(place), `the deletion of ${which}`, async () => {
    const written = await insertRows(place, structure, rows)
    const others = othersIn(structure, rows, written)
    return `Inserted ${which} again${isComputed ? ', with a new key, which the database computes' : ''}${
      others.length > 0 ? `. Not as before: ${others.join(', ')}, which cannot be written as it was` : ''
    }`
  })
}

/**
 * Columns whose texts are others than before, and that the database does not compute. For example, the gateway writes the null of JSON as NULL.
 * @param {Structure} structure
 * @param {readonly Row[]} before
 * @param {readonly Row[]} after
 */
const othersIn = ({ columns = [] }, before, after) =>
  columns
    .filter(({ is_writable }) => is_writable)
    .map(({ column_name }) => column_name)
    .filter((name) => after.some((row, index) => row[name] !== before[index]?.[name]))
