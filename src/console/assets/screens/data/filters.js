import { useState } from 'preact/hooks'
import { parse } from '../../api.js'
import { html } from '../../html.js'
import { goWith } from '../../router.js'
import { take } from '../../sign-in.js'
import { Value } from '../../values.js'

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
