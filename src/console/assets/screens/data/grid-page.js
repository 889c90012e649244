import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, call } from '../../api.js'
import { useLoad } from '../../hooks.js'
import { textOf } from '../../values.js'
import { named } from './described.js'
import { asText, keyOf } from './edit.js'
import { conditionsFrom } from './filters.js'

/**
 * @typedef {import('./edit.js').Row} Row
 * @typedef {{ rows: readonly Row[], columns: readonly ShownColumn[], hasMore: boolean, total: number, question: string }} Page
 * @typedef {{ column_name: string, data_type: string } & Partial<import('./edit-types.js').Column>} ShownColumn
 */

/** Rows of a page, and of one whose rows are too large for that. */
export const LIMIT = 50
export const FEW = 5
/** Columns beside each other. A wider table is paged. */
export const WIDTH = 50
/** Milliseconds for which a change is marked. */
const MARKED = 4_000

/** @param {import('../../router.js').Query} query */
export const sizeOf = ({ rows }) => (rows === String(FEW) ? FEW : LIMIT)

/** @param {string | undefined} text */
export const countIn = (text) => Math.max(0, Math.floor(Number(text ?? 0)) || 0)

/** The order of the address, and then that of the key, so that a row stays where it is when it is written. @param {import('./edit.js').Structure} structure @param {import('../../router.js').Query} query */
export function orderOf({ key, isText }, { sort, dir }) {
  const asked = sort === undefined ? [] : [{ field: sort, direction: dir === 'desc' ? 'desc' : 'asc' }]
  const rest = isText ? key.filter((name) => name !== sort) : []
  return [...asked, ...rest.map((field) => ({ field, direction: 'asc' }))]
}

/**
 * The rows of the address, and what has changed of them since they were shown.
 * @param {import('./edit.js').Place} place
 * @param {import('./edit.js').Structure} structure
 * @param {import('../../router.js').Query} query
 * @param {{ filters: readonly import('./filters.js').Filter[], isExact: boolean }} asked
 */
export function usePage(place, structure, query, { filters, isExact }) {
  const from = countIn(query.columns)
  const visible = structure.columns?.slice(from, from + WIDTH)
  const sort = orderOf(structure, query)
  const limit = sizeOf(query)
  const body = {
    ...{ ...named(place), limit: limit + 1, offset: countIn(query.offset) },
    ...(filters.length > 0 && { conditions: conditionsFrom(filters) }),
    ...(sort.length > 0 && { sort_by: sort }),
    ...(structure.isText && { columns: textsOf(structure, visible ?? []) }),
    count: isExact ? 'exact' : 'estimated',
  }
  const question = JSON.stringify(body)
  const loaded = useLoad(
    async (signal) => {
      const asked = { method: 'POST', client: place.client, body, signal }
      const { data, count } = await call('/gateway/fetch', asked)
      /** @type {readonly Readonly<Record<string, unknown>>[]} */
      const found = data
      /** @type {Page} */
      const page = {
        ...{ question, total: count, hasMore: found.length > limit },
        // Who may not read the structure sees the columns of the rows.
        columns: visible ?? Object.keys(found[0] ?? {}).map((name) => ({ column_name: name, data_type: '' })),
        rows: found.slice(0, limit).map(textsIn),
      }
      return page
    },
    [place, question],
  )
  return { ...loaded, ...useOwnWrites(structure.key, loaded.data) }
}

/** @param {import('./edit.js').Structure} structure @param {readonly ShownColumn[]} visible */
const textsOf = ({ key }, visible) =>
  [...new Set([...key, ...visible.map(({ column_name }) => column_name)])].map(asText)

/** @param {Readonly<Record<string, unknown>>} row @returns {Row} */
const textsIn = (row) =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, value === null ? null : textOf(value)]),
  )

/**
 * Rows with what this page has written since they were read, and marks of what others have.
 * @param {readonly string[]} key
 * @param {Page | undefined} page
 */
function useOwnWrites(key, page) {
  const [own, setOwn] = useState({ page, rows: page?.rows ?? [] })
  const rows = own.page === page ? own.rows : (page?.rows ?? [])
  const now = useRef({ page, rows })
  const before = useRef({ page, rows })
  now.current = { page, rows }
  const [marks, setMarks] = useState(/** @type {ReadonlyMap<string, ReadonlySet<string>>} */ (new Map()))
  useEffect(() => {
    const { page: last, rows: shown } = before.current
    const isAgain =
      page !== undefined && last !== undefined && last !== page && last.question === page.question
    if (isAgain && key.length > 0) setMarks(changesIn(key, shown, page.rows))
  }, [page])
  useEffect(() => {
    before.current = now.current
  })
  useEffect(() => {
    if (marks.size === 0) return undefined
    const timer = setTimeout(() => setMarks(new Map()), MARKED)
    return () => clearTimeout(timer)
  }, [marks])
  /** Shows a row as it is now, or without it. @param {string} id @param {Row | undefined} row */
  const patch = (id, row) => {
    const { page, rows } = now.current
    const next = rows.flatMap((one) => (keyOf(key, one) !== id ? [one] : row === undefined ? [] : [row]))
    now.current = { page, rows: next }
    setOwn(now.current)
  }
  return { rows, marks, patch, rowsNow: () => now.current.rows }
}

/**
 * Names of changed columns by row.
 * @param {readonly string[]} key
 * @param {readonly Row[]} before
 * @param {readonly Row[]} after
 */
function changesIn(key, before, after) {
  const known = new Map(before.map((row) => [keyOf(key, row), row]))
  return new Map(
    after.flatMap((row) => {
      const id = keyOf(key, row)
      const old = known.get(id)
      const changed = Object.keys(row).filter((name) => row[name] !== old?.[name])
      return changed.length === 0 ? [] : [/** @type {const} */ ([id, new Set(changed)])]
    }),
  )
}

/** An answer that would be too large for one: fewer rows are not. @param {unknown} failure */
export const isTooLarge = (failure) => failure instanceof ApiError && failure.code === 'result_too_large'
