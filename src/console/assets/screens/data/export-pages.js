import { call } from '../../api.js'
import { named } from './described.js'
import { asText, mayBeNull } from './edit.js'
import { conditionsFrom, orderOf } from './grid-page.js'

/**
 * Where a part begins: behind a row, by the texts of its order, or behind a number of rows where no key gives an order.
 * @typedef {{ offset: number } | { after: readonly (string | null)[] }} Position
 * @typedef {{ place: import('./edit.js').Place, structure: import('./edit.js').Structure, query: import('../../router.js').Query, filters: readonly import('./grid-page.js').Filter[] }} Asked
 * @typedef {Readonly<Record<string, unknown>>} Values
 */

/** The start of the names under which a row has the texts of its order. */
const ORDER = 'order of the export '

/**
 * Some rows, and where the next ones begin, if there are any.
 * @param {Asked} asked
 * @param {Position} from
 * @param {number} limit
 * @param {AbortSignal} signal
 * @returns {Promise<{ rows: readonly Values[], next: Position | undefined }>}
 */
export async function readPart({ place, structure, query, filters }, from, limit, signal) {
  const order = orderOf(structure, query)
  const isKeyed = structure.isText && structure.key.length > 0
  const conditions = [
    ...conditionsFrom(filters),
    ...('after' in from ? behind(structure, order, from.after) : []),
  ]
  const texts = isKeyed ? order.map(({ field }, index) => `"${ORDER}${index}":${asText(field)}`) : []
  const body = {
    ...{ ...named(place), limit: limit + 1, columns: ['*', ...texts] },
    ...(conditions.length > 0 && { conditions }),
    ...(order.length > 0 && { sort_by: order }),
    ...('offset' in from && { offset: from.offset }),
  }
  const { data } = await call('/gateway/fetch', {
    method: 'POST',

    client: place.client,
    body,
    signal,
  })
  /** @type {readonly Values[]} */
  const found = data
  const rows = found.slice(0, limit)
  const last = rows.at(-1)
  const ended = found.length <= limit || last === undefined
  const after = () =>
    texts.map((_, index) => /** @type {string | null} */ (last?.[`${ORDER}${index}`] ?? null))
  const next = isKeyed ? { after: after() } : { offset: ('offset' in from ? from.offset : 0) + rows.length }
  return { rows: rows.map(withoutOrder), next: ended ? undefined : next }
}

/** @param {Values} row */
const withoutOrder = (row) =>
  Object.fromEntries(Object.entries(row).filter(([name]) => !name.startsWith(ORDER)))

/**
 * Conditions of the rows that come after one. The first of them alone lets an index begin there, where no null can be.
 * @param {import('./edit.js').Structure} structure
 * @param {readonly { field: string, direction: string }[]} order
 * @param {readonly (string | null)[]} values
 */
function behind({ columns = [] }, order, values) {
  const nullable = new Set(columns.filter(mayBeNull).map(({ column_name }) => column_name))
  const [first] = order
  const [value] = values
  const bound =
    first === undefined || nullable.has(first.field)
      ? []
      : [{ column: first.field, operator: first.direction === 'desc' ? 'lte' : 'gte', value }]
  return [...bound, after(order, values, nullable)]
}

/**
 * In an order in which nulls are the largest values, as that of PostgreSQL is.
 * @param {readonly { field: string, direction: string }[]} order
 * @param {readonly (string | null)[]} values
 * @param {ReadonlySet<string>} nullable
 * @returns {object}
 */
function after([first, ...others], [value = null, ...rest], nullable) {
  if (first === undefined) throw new Error('an order has fields')
  const { field: column, direction } = first
  const isDown = direction === 'desc'
  const isNull = { column, operator: 'is', value: null }
  const beyond = { column, operator: isDown ? 'lt' : 'gt', value }
  const further =
    value === null
      ? isDown
        ? [{ not: isNull }]
        : []
      : [beyond, ...(!isDown && nullable.has(column) ? [isNull] : [])]
  if (others.length === 0) return { or: further }
  const same = value === null ? isNull : { column, operator: 'eq', value }
  return { or: [...further, { and: [same, after(others, rest, nullable)] }] }
}
