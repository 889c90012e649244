import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ApiError, call, parse } from '../../api.js'
import { take } from '../../controls.js'
import { useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { goWith } from '../../router.js'
import { textOf, Value } from '../../values.js'
import { named } from './described.js'
import { keyOf, textsOf } from './edit.js'

/**
 * @typedef {import('./edit.js').Row} Row
 * @typedef {{ rows: readonly Row[], columns: readonly ShownColumn[], hasMore: boolean, total: number, question: string }} Page
 * @typedef {{ column_name: string, data_type: string } & Partial<import('./edit.js').Column>} ShownColumn
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
 * @param {{ filters: readonly Filter[], isExact: boolean }} asked
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
    ...(structure.isText && {
      columns: textsOf(
        structure.key,
        (visible ?? []).map((column) => column.column_name),
      ),
    }),
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
  const [fresh, setFresh] = useState(/** @type {readonly Changes[]} */ ([]))
  useEffect(() => {
    const { page: last, rows: shown } = before.current
    const isAgain =
      page !== undefined && last !== undefined && last !== page && last.question === page.question
    if (!isAgain || key.length === 0) return
    const changes = changesIn(key, shown, page.rows)
    if (changes.size === 0) return
    setFresh((before) => [...before, changes])
    setTimeout(() => setFresh((before) => before.filter((one) => one !== changes)), MARKED)
  }, [page])
  useEffect(() => {
    before.current = now.current
  })
  const marks = useMemo(() => joined(fresh), [fresh])
  /** Shows a row as it is now, or without it. @param {string} id @param {Row | undefined} row */
  const patch = (id, row) => {
    const { page, rows } = now.current
    const next = rows.flatMap((one) => (keyOf(key, one) !== id ? [one] : row === undefined ? [] : [row]))
    now.current = { page, rows: next }
    setOwn(now.current)
  }
  return { rows, marks, patch, rowsNow: () => now.current.rows }
}

/** @typedef {ReadonlyMap<string, ReadonlySet<string>>} Changes names of changed columns by row */

/** Those of several readings. @param {readonly Changes[]} all */
function joined(all) {
  /** @type {Map<string, Set<string>>} */
  const marks = new Map()
  for (const changes of all)
    for (const [id, names] of changes) marks.set(id, new Set([...(marks.get(id) ?? []), ...names]))
  return marks
}

/**
 * @param {readonly string[]} key
 * @param {readonly Row[]} before
 * @param {readonly Row[]} after
 * @returns {Changes}
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

/** @typedef {readonly [column: string, operator: string, value: string]} Filter */

/** @type {Readonly<Record<string, string>>} */
const OPERATORS = {
  eq: '=',
  neq: '≠',
  gt: '>',
  gte: '≥',
  lt: '<',
  lte: '≤',
  ilike: 'like (any case)',
  like: 'like',
  in: 'one of',
  is: 'is',
  contains: 'contains',
}

/** The filters of an address, which anyone may have written. @param {string | undefined} text @returns {readonly Filter[]} */
export function filtersIn(text) {
  if (text === undefined) return []
  try {
    const given = parse(text)
    return Array.isArray(given) ? given.filter(isFilter) : []
  } catch {
    return []
  }
}

/** @param {unknown} one @returns {one is Filter} */
const isFilter = (one) =>
  Array.isArray(one) &&
  one.length === 3 &&
  one.every((part) => typeof part === 'string') &&
  Object.hasOwn(OPERATORS, String(one[1]))

/** As the gateway takes them. Values are sent as text, which the database reads by the type of the column. @param {readonly Filter[]} filters */
export const conditionsFrom = (filters) =>
  filters.map(([column, operator, value]) => ({ column, operator, value: valueFor(operator, value) }))

/** @param {string} operator @param {string} value */
function valueFor(operator, value) {
  if (operator === 'in') return value.split(',').map((one) => one.trim())
  if (operator === 'is') return value === 'true' ? true : value === 'false' ? false : null
  return value
}

/** @param {readonly Filter[]} filters */
const keep = (filters) =>
  goWith({ where: filters.length === 0 ? undefined : JSON.stringify(filters), offset: undefined })

/** @param {{ filters: readonly Filter[], columns: readonly { column_name: string }[] }} props */
export function Filters({ filters, columns }) {
  const [column, setColumn] = useState('')
  const [operator, setOperator] = useState('eq')
  const [value, setValue] = useState('')
  const chosen = column === '' ? (columns[0]?.column_name ?? '') : column
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    keep([...filters, [chosen, operator, value]])
    setValue('')
  }
  return html`<form class="tools" role="search" aria-label="Filter rows" onSubmit=${submit}>
    <label>Where <select value=${chosen} onChange=${take(setColumn)}>${columns.map(
      ({ column_name: name }) => html`<option value=${name}>${name}</option>`,
    )}</select></label>
    <label><span class="hidden">Operator</span><select value=${operator} onChange=${take(setOperator)}>${Object.entries(
      OPERATORS,
    ).map(([name, label]) => html`<option value=${name}>${label}</option>`)}</select></label>
    <label><span class="hidden">Value</span><input type="search" value=${value} onInput=${take(setValue)} placeholder=${operator === 'is' ? 'null' : operator === 'in' ? 'a, b, c' : 'value'} /></label>
    <button disabled=${chosen === ''}>Add filter</button>
    ${filters.map(
      (
        [name, by, given],
        index,
      ) => html`<span class="chip"><${Value} value=${name} most=${40} /> ${OPERATORS[by]} <${Value} value=${given} most=${40} />
        <button type="button" class="plain" aria-label=${`Remove the filter on ${name}`} onClick=${() => keep(filters.filter((_one, at) => at !== index))}>×</button></span>`,
    )}
  </form>`
}
