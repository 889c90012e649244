import { parse } from '../../api.js'
import { textOf } from '../../values.js'

/**
 * The facts of a route as they are typed.
 * @typedef {{ route_key: string, client_name: string, allowed_ops: readonly string[], table_name: string, conditions: string, columns: string, query: string,
 *   requires_key: boolean, run_as: string, requests: string, window_seconds: string, allowed_origins: string }} Typed
 * @typedef {import('./record.js').Route} Route
 */

/** @type {Typed} */
export const NOTHING_TYPED = {
  ...{ route_key: '', client_name: '', allowed_ops: ['fetch'], table_name: '', conditions: '' },
  ...{ columns: '', query: '', requires_key: true, run_as: 'caller' },
  ...{ requests: '60', window_seconds: '60', allowed_origins: '' },
}

/** @param {Route} route @returns {Typed} */
export const typedOf = (route) => ({
  ...{ route_key: route.route_key, client_name: route.client_name, allowed_ops: route.allowed_ops },
  ...{ requires_key: route.requires_key, run_as: route.run_as },
  table_name: route.table_name ?? '',
  conditions: route.conditions === null ? '' : JSON.stringify(route.conditions, null, 1),
  columns: (route.columns ?? []).join(', '),
  query: route.query ?? '',
  requests: textOf(route.rate_limit.requests),
  window_seconds: textOf(route.rate_limit.window_seconds),
  allowed_origins: route.allowed_origins.join('\n'),
})

/** As the API takes them; null restores the default. @param {Typed} typed */
export const factsOf = (typed) => ({
  client_name: typed.client_name,
  allowed_ops: typed.allowed_ops,
  table_name: emptyAsNull(typed.table_name.trim()),
  conditions: conditionsIn(typed.conditions),
  columns: listAsNull(typed.columns.split(',')),
  query: emptyAsNull(typed.query),
  requires_key: typed.requires_key,
  run_as: typed.run_as,
  rate_limit: { requests: Number(typed.requests), window_seconds: Number(typed.window_seconds) },
  allowed_origins: listOf(typed.allowed_origins.split(/\s+/)),
})

/** Only what was changed, so that what somebody else has changed meanwhile stays. @param {Typed} before @param {Typed} typed */
export function changesOf(before, typed) {
  const [old, facts] = [factsOf(before), factsOf(typed)]
  return Object.fromEntries(
    Object.entries(facts).filter(
      ([name, value]) =>
        JSON.stringify(value) !== JSON.stringify(old[/** @type {keyof typeof old} */ (name)]),
    ),
  )
}

/** @param {string} text */
const emptyAsNull = (text) => (text === '' ? null : text)

/** @param {readonly string[]} parts */
const listOf = (parts) => parts.map((part) => part.trim()).filter((part) => part !== '')

/** @param {readonly string[]} parts */
const listAsNull = (parts) => (listOf(parts).length === 0 ? null : listOf(parts))

/** @param {string} text */
export function conditionsIn(text) {
  if (text.trim() === '') return []
  try {
    return parse(text)
  } catch (error) {
    throw new Error(`The fixed conditions are not JSON: ${error instanceof Error ? error.message : error}`)
  }
}

/**
 * The conditions with one more. A value that is JSON is taken as it is, other values are text.
 * @param {string} text @param {string} column @param {string} operator @param {string} value
 */
export function withCondition(text, column, operator, value) {
  const given = conditionsIn(text)
  const one = { column, operator, value: operator === 'in' ? listIn(value) : valueIn(value) }
  return JSON.stringify([...(Array.isArray(given) ? given : [given]), one], null, 1)
}

/** @param {string} text */
function listIn(text) {
  const value = valueIn(text)
  return Array.isArray(value) ? value : listOf(text.split(',')).map(valueIn)
}

/** @param {string} text */
function valueIn(text) {
  try {
    return parse(text)
  } catch {
    return text
  }
}
