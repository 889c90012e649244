import { parse } from '../../api.js'
import { session } from '../../session.js'
import { textOf } from '../../values.js'

/**
 * @typedef {Readonly<Record<string, any>>} Definition `source`, `transform`, `sink` and what else the body of a run has
 * @typedef {{ name: string, description: string | null, source_table: string | null, sink_table: string | null, source_client: string | null, sink_client: string | null, definition: Definition }} Named
 */

/** Definitions to begin from, by their names in an address. @type {Readonly<Record<string, { title: string, definition: Definition }>>} */
export const STARTERS = {
  copy: {
    title: 'Copy the rows of a table',
    definition: {
      source: { table_name: 'orders' },
      sink: { table_name: 'orders_archive', on_conflict: 'id' },
    },
  },
  rename: {
    title: 'Rename columns, leave some out, choose rows',
    definition: {
      source: {
        table_name: 'orders',
        columns: ['id', 'country', 'note'],
        conditions: [{ column: 'country', operator: 'eq', value: 'DE' }],
      },
      transform: { column_aliases: { country: 'nation', note: null } },
      sink: { table_name: 'german_orders' },
    },
  },
  totals: {
    title: 'Sums by group, into another client',
    definition: {
      source: { table_name: 'orders' },
      transform: {
        group_by: 'country',
        aggregation_column: 'amount',
        column_aliases: { country: 'nation', amount: 'total', count: 'orders' },
      },
      sink: { client: 'reports', table_name: 'totals' },
    },
  },
}

/** @param {Definition} definition */
export const textFrom = ({ description: _, ...parts }) => JSON.stringify(parts, null, 2)

/** Typed texts stay until the page is closed or one signs out, also when one looks at another screen. @type {Map<string, string>} */
const drafts = new Map()

session.follow(() => {
  if (session.get().kind === 'out') drafts.clear()
})

/** @param {string} from */
export const draftOf = (from) => drafts.get(from)

/** @param {string} from @param {string | undefined} text */
export function keepDraft(from, text) {
  if (text === undefined) drafts.delete(from)
  else drafts.set(from, text)
}

/** A definition that is no JSON, and where. */
export class NotJson extends Error {
  /** @param {string} message @param {number} position */
  constructor(message, position) {
    super(message)
    this.position = position
  }
}

/** @param {string} text @returns {Definition} */
export function definitionIn(text) {
  const definition = parsed(text)
  if (typeof definition === 'object' && definition !== null && !Array.isArray(definition)) return definition
  throw new NotJson('The definition is an object with source, transform and sink.', 0)
}

/** @param {string} text */
function parsed(text) {
  try {
    return parse(text)
  } catch (error) {
    const says = error instanceof Error ? error.message : textOf(error)
    const position = /position (\d+)/.exec(says)?.[1]
    // At the end of the text browsers name no position.
    throw new NotJson(
      `The definition is not JSON: ${says}`,
      position === undefined ? text.length : Number(position),
    )
  }
}

/**
 * Where the text has the member that a failure names: `source.conditions.0.column`. Undefined when it has none.
 * @param {string} text
 * @param {string} field
 * @returns {readonly [start: number, end: number] | undefined}
 */
export function placeOf(text, field) {
  let found = /** @type {readonly [number, number] | undefined} */ (undefined)
  for (const part of field.split('.')) {
    if (/^\d+$/.test(part)) continue
    const name = JSON.stringify(part)
    const start = text.indexOf(name, found?.[1] ?? 0)
    if (start < 0) return found
    found = [start, start + name.length]
  }
  return found
}
