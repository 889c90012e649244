import { ApiError, actBy, auth, call, otherUser } from './api.js'
import { createStore } from './hooks.js'

/**
 * @typedef {{ id: string, name: string, email: string }} Person
 * @typedef {{ name: string, detail: string, person?: Person, allows: ReadonlySet<string>, clients: Readonly<Record<string, readonly string[]>> }} Caller
 * `allows`: `user:list`, `operator:keys`, … `clients`: rights on the gateway by client, `*` for every client.
 * @typedef {{ kind: 'unknown' } | { kind: 'out', failure?: unknown } | { kind: 'in', caller: Caller }} Session
 */

/** @type {import('./hooks.js').Store<Session>} */
export const session = createStore(/** @type {Session} */ ({ kind: 'unknown' }))

/** Tells other tabs who has signed in. Nothing is stored. */
const tabs = new BroadcastChannel('gatehouse-console')

/** Finds out whose session this browser has, and what it may do. */
export async function loadSession() {
  const known = await call(auth('/admin/list-permissions'), { isEntry: true }).catch(outBy)
  if (known === undefined) return
  const { user, permissions, gateway } = known
  actBy({ by: 'session', userId: user.id })
  otherUser.set(undefined)
  session.set({
    kind: 'in',
    caller: {
      name: user.name,
      detail: user.email,
      person: user,
      allows: actionsIn(permissions),
      clients: gateway,
    },
  })
  tabs.postMessage({ id: user.id, name: user.name })
}

/** @param {unknown} failure */
function outBy(failure) {
  const isOut = failure instanceof ApiError && failure.status === 401
  // Others: for example, the role requires a second factor, which this session lacks.
  session.set({ kind: 'out', ...(!isOut && { failure }) })
}

/** @param {Readonly<Record<string, readonly string[]>>} permissions */
const actionsIn = (permissions) =>
  new Set(
    Object.entries(permissions).flatMap(([resource, actions]) =>
      actions.map((action) => `${resource}:${action}`),
    ),
  )

const OPERATOR = ['clients', 'keys', 'webhooks', 'routes', 'backups', 'metrics', 'settings'].map(
  (right) => `operator:${right}`,
)

/**
 * Acts by a key in place of a session: the admin key, or one of a client.
 * @param {string} key
 * @param {string} client
 */
export async function enterByKey(key, client) {
  actBy({ by: 'key', key })
  const isOfClient = key.startsWith('svc_')
  try {
    if (isOfClient) await call('/schema/tables', { client, isEntry: true }).catch(unlessLacking)
    else await call('/admin/activity', { isEntry: true })
  } catch (error) {
    actBy({ by: 'session' })
    throw error
  }
  session.set({
    kind: 'in',
    caller: {
      name: isOfClient ? 'API key' : 'Admin key',
      detail: isOfClient ? `client ${client}` : 'until this page is closed',
      allows: new Set(isOfClient ? [] : OPERATOR),
      clients: { [isOfClient ? client : '*']: ['*'] },
    },
  })
}

/** A key may be good without the right to list tables. @param {unknown} error */
function unlessLacking(error) {
  if (!(error instanceof ApiError) || error.status !== 403) throw error
}

export async function signOut() {
  const state = session.get()
  const isPerson = state.kind === 'in' && state.caller.person !== undefined
  if (isPerson) await call(auth('/sign-out'), { method: 'POST', body: {}, asksNothing: true })
  actBy({ by: 'session' })
  session.set({ kind: 'out' })
  // A key is that of one tab.
  if (isPerson) tabs.postMessage({ id: undefined, name: 'Nobody' })
}

tabs.addEventListener('message', ({ data }) => {
  const state = session.get()
  const shown = state.kind === 'in' ? state.caller.person?.id : undefined
  // A tab that acts by a key has no user.
  if (state.kind === 'in' && shown === undefined) return
  if (data.id === shown) otherUser.set(undefined)
  else if (shown === undefined) loadSession()
  else if (data.id === undefined) session.set({ kind: 'out' })
  else otherUser.set(data)
})

/**
 * Whether one of these is allowed; nothing is needed by an empty list. `gateway`: rights on any client. `pipelines.run`: this one on any.
 * @param {Caller} caller
 * @param {readonly string[]} needs
 */
export const may = ({ allows, clients }, needs) =>
  needs.length === 0 ||
  needs.some((need) => {
    if (need === 'gateway') return Object.keys(clients).length > 0
    return need.includes('.')
      ? Object.values(clients).some((rights) => includes(rights, need))
      : allows.has(need)
  })

/** @param {readonly string[]} rights on a client @param {string} right with a name of its own */
const includes = (rights, right) =>
  rights.some(
    (one) => one === '*' || one === right || (one.endsWith('.*') && right.startsWith(one.slice(0, -1))),
  )

/** @param {Caller} caller @param {string} client */
export const mayQuery = ({ clients }, client) =>
  SQL_RIGHTS.some((right) => includes([...(clients[client] ?? []), ...(clients['*'] ?? [])], right))

/** Each is enough for the screen of SQL. */
const SQL_RIGHTS = ['gateway.query', 'gateway.query.read']

/**
 * A right with a name of its own, like `management.tables.write`.
 * @param {Caller} caller
 * @param {string} client
 * @param {string} right
 */
export function holds(caller, client, right) {
  const held = rightsOn(caller, client)
  // Of a key only the service knows the rights. The admin key changes no structure.
  if (held === undefined) return caller.clients['*'] === undefined || !right.startsWith('management.')
  if (NAMED_ONLY.includes(right)) return held.includes(right)
  const parts = right.split('.')
  const wildcards = parts.slice(1).map((_part, index) => `${parts.slice(0, index + 1).join('.')}.*`)
  return held.some((one) => one === right || one === '*' || wildcards.includes(one))
}

/** No wildcard includes them where row-level security decides. */
const NAMED_ONLY = ['gateway.bypass_row_level_security', 'management.functions.write']

/**
 * @param {Caller} caller
 * @param {import('./screens/data/described.js').At} at
 * @param {'read' | 'write' | 'delete'} action
 */
export function holdsTable(caller, { client, schema, table }, action) {
  const held = rightsOn(caller, client)
  const name = schema === 'public' ? table : `${schema}.${table}`
  const sufficient = ['*', 'gateway.*', `gateway.${action}`, `*.${action}`, `${name}.${action}`, `${name}.*`]
  return held === undefined || held.some((one) => sufficient.includes(one))
}

/** Undefined for a key. @param {Caller} caller @param {string} client */
const rightsOn = ({ person, clients }, client) =>
  person === undefined ? undefined : [...(clients['*'] ?? []), ...(clients[client] ?? [])]

/**
 * The clients that the caller has rights on.
 * @param {Caller} caller
 * @param {AbortSignal} signal
 * @returns {Promise<readonly string[]>}
 */
export async function clientsOf(caller, signal) {
  const named = Object.keys(caller.clients).filter((name) => name !== '*')
  if (caller.clients['*'] === undefined) return named
  if (!may(caller, ['operator:clients'])) return named.length > 0 ? named : ['default']
  const { data } = await call('/admin/clients', { signal })
  /** @type {readonly { client_name: string, is_active: boolean }[]} */
  const records = data.clients
  return records.filter(({ is_active }) => is_active).map(({ client_name }) => client_name)
}
