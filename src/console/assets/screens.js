import { facts } from './api.js'

/**
 * A part of the console. To add one: a module in screens/ that exports `View`, and a line here.
 * @typedef {{ path: string, title: string, letter: string, needs: readonly string[], load: () => Promise<{ View: import('preact').FunctionComponent<import('./router.js').ViewProps> }> }} Screen
 * `needs`: one of these permissions shows it (session.js `may`). `letter`: g and this letter open it.
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
