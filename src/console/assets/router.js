import { facts } from './api.js'
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
 * A part of the console. To add one: a module in screens/ that exports `View`, and a line here.
 * @typedef {{ path: string, title: string, letter: string, needs: readonly string[], load: () => Promise<{ View: import('preact').FunctionComponent<ViewProps> }> }} Screen
 * `needs`: one of these permissions shows it (session.js `may`). `letter`: g and this letter open it.
 * @typedef {{ caller: import('./session.js').Caller, rest: string, query: import('./router.js').Query }} ViewProps
 * `rest`: the address behind the screen's own path.
 */

/** @type {readonly Screen[]} */
export const SCREENS = [
  { path: '/', title: 'Home', letter: 'h', needs: [], load: () => import('./screens/home.js') },
  {
    path: '/users',
    title: 'Users',
    letter: 'u',
    needs: ['user:list'],
    load: () => import('./screens/users.js'),
  },
  {
    path: '/organizations',
    title: 'Organizations',
    letter: 'o',
    needs: ['organization:list'],
    load: () => import('./screens/organizations.js'),
  },
  { path: '/data', title: 'Data', letter: 'd', needs: ['gateway'], load: () => import('./screens/data.js') },
  {
    path: '/sql',
    title: 'SQL',
    letter: 'q',
    needs: ['gateway.query', 'gateway.query.read'],
    load: () => import('./screens/sql.js'),
  },
  { path: '/api', title: 'API', letter: 'i', needs: [], load: () => import('./screens/api.js') },
  {
    path: '/keys',
    title: 'Keys',
    letter: 'k',
    needs: ['operator:keys'],
    load: () => import('./screens/keys.js'),
  },
  {
    path: '/pipelines',
    title: 'Pipelines',
    letter: 'p',
    needs: ['pipelines.run'],
    load: () => import('./screens/pipelines.js'),
  },
  {
    path: '/webhooks',
    title: 'Webhooks',
    letter: 'w',
    needs: ['operator:webhooks'],
    load: () => import('./screens/webhooks.js'),
  },
  {
    path: '/public-routes',
    title: 'Public routes',
    letter: 'r',
    needs: ['operator:routes'],
    load: () => import('./screens/public-routes.js'),
  },
  {
    path: '/backups',
    title: 'Backups',
    letter: 'b',
    needs: ['operator:backups'],
    load: () => import('./screens/backups.js'),
  },
  {
    path: '/mail',
    title: 'Mail',
    letter: 'm',
    // The outbox of development is open to all on its machine.
    needs: facts.mail ? [] : ['operator:settings'],
    load: () => import('./screens/mail.js'),
  },
  {
    path: '/audit',
    title: 'Audit',
    letter: 'a',
    needs: ['audit:list'],
    load: () => import('./screens/audit.js'),
  },
  {
    path: '/settings',
    title: 'Settings',
    letter: 's',
    needs: ['operator:settings'],
    load: () => import('./screens/settings.js'),
  },
]

/** The screen of a place, and the rest of its path. @param {string} path */
export function screenAt(path) {
  const screen = SCREENS.find(
    (one) => one.path === path || (one.path !== '/' && path.startsWith(`${one.path}/`)),
  )
  return screen && { screen, rest: path.slice(screen.path.length).replace(/^\//, '') }
}
