import { createStore } from './hooks.js'

const BASE = '/console'

/** @typedef {Readonly<Record<string, string>>} Query */
/** @typedef {{ path: string, query: Query }} Place */

/**
 * The place that the address names. Its query holds what a list shows, and no secret.
 * @type {import('./hooks.js').Store<Place>}
 */
export const place = createStore(placeOf(location))

/** @param {Pick<Location, 'pathname' | 'search'>} address */
function placeOf({ pathname, search }) {
  const path = pathname.slice(BASE.length).replace(/\/+$/, '')
  return { path: path === '' ? '/' : path, query: Object.fromEntries(new URLSearchParams(search)) }
}

/**
 * The address of a place. Empty values are left out.
 * @param {string} path
 * @param {Readonly<Record<string, string | number | undefined>>} [query]
 */
export function addressOf(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return `${BASE}${path === '/' ? '' : path}${search === '' ? '' : `?${search}`}`
}

/**
 * @param {string} address
 * @param {{ replaces?: boolean }} [how]
 */
export function go(address, { replaces = false } = {}) {
  if (replaces) history.replaceState(null, '', address)
  else history.pushState(null, '', address)
  place.set(placeOf(location))
}

/**
 * Changes some parameters of the present place.
 * @param {Readonly<Record<string, string | number | undefined>>} changes
 * @param {{ replaces?: boolean }} [how]
 */
export function goWith(changes, how) {
  const { path, query } = place.get()
  go(addressOf(path, { ...query, ...changes }), how)
}

/** The beginning of a page, which an address may have as anything. @param {string | undefined} text */
export const offsetIn = (text) => (/^\d{1,9}$/.test(text ?? '') ? Number(text) : 0)

addEventListener('popstate', () => place.set(placeOf(location)))

/**
 * Follows links within the console without loading the page again.
 * @param {MouseEvent} event
 */
export function followLink(event) {
  if (event.defaultPrevented || event.button !== 0) return
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  const link = event.target instanceof Element ? event.target.closest('a') : null
  if (link === null || link.target !== '' || link.origin !== location.origin) return
  if (link.pathname !== BASE && !link.pathname.startsWith(`${BASE}/`)) return
  event.preventDefault()
  go(link.pathname + link.search)
}

/**
 * `rest`: the address behind the screen's own path.
 * @typedef {{ caller: import('./session.js').Caller, rest: string, query: Query }} ViewProps
 */
