import { readTable } from '#databases/request/table-name.ts'
import { type Category, EVENTS, type EventName } from '#kernel/events.ts'
import { fail } from '../errors.ts'

/** The events that a route key stands for: the name of one, `gateway.*` and the like, or `*` for all but those of users. */
const CATEGORIES = [...new Set(Object.values(EVENTS).map(({ category }) => category))]
export const ROUTE_KEYS = ['*', ...CATEGORIES.map((category) => `${category}.*`), ...Object.keys(EVENTS)]

/** Operations that return rows, which a filter judges. */
const WITH_ROWS = new Set([
  '*',
  'gateway.*',
  ...Object.keys(EVENTS).filter((name) => name.startsWith('gateway_')),
])
const WITH_TABLE = new Set([
  ...['*', 'gateway.*', 'schema.*'],
  ...Object.entries(EVENTS).flatMap(([name, { tableScope }]) => (tableScope === true ? [name] : [])),
])

export type Scope = {
  readonly routeKey: string
  readonly clientName: string | null
  readonly tableName: string | null
  readonly filter: string | null
}

export const isOfUsers = (routeKey: string): boolean =>
  routeKey === 'auth.*' || categoryOf(routeKey) === 'auth'

const categoryOf = (routeKey: string): Category | undefined =>
  Object.hasOwn(EVENTS, routeKey) ? EVENTS[routeKey as EventName].category : undefined // a key of EVENTS

/** Throws when parts of the scope contradict each other: such a webhook would get nothing. */
export function checkScope({ routeKey, clientName, tableName, filter }: Scope): void {
  if (!ROUTE_KEYS.includes(routeKey))
    throw refused(
      'route_key',
      `${JSON.stringify(routeKey.slice(0, 100))} is not a route key`,
      'List them with GET /admin/webhooks/events',
    )
  if (isOfUsers(routeKey) && clientName !== null)
    throw refused('client_name', 'Events of users belong to no client', 'Leave client_name out')
  if (!isOfUsers(routeKey) && clientName === null)
    throw refused('client_name', 'This webhook needs a client', 'Set client_name')
  if (tableName !== null && !WITH_TABLE.has(routeKey))
    throw refused('table_name', `${routeKey} has no table`, 'Leave table_name out')
  if (filter !== null && !WITH_ROWS.has(routeKey))
    throw refused('filter', `${routeKey} has no rows`, 'Leave filter out')
}

/** `schema.table`, as events name a table. */
export function fullTableName(name: string): string {
  const { schema, table } = readTable({ table_name: name })
  return `${schema}.${table}`
}

const refused = (field: string, message: string, hint: string) =>
  fail('invalid_webhook', { message, hint, details: { field } })
