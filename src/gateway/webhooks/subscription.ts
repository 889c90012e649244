import type { TableName } from '#databases/request/request.ts'
import { readTable } from '#databases/request/table-name.ts'
import { closestName } from '#kernel/closest-name.ts'
import { eventsOf, ROUTE_KEYS } from '#kernel/events/route-keys.ts'
import type { Subscription } from '#kernel/events/subscriptions.ts'
import { EVENTS } from '#kernel/events.ts'
import { fail } from '../errors.ts'

type RouteKeys = readonly string[]

export const isOfUsers = (routeKeys: RouteKeys): boolean =>
  eventsOf(routeKeys).some((name) => EVENTS[name].category === 'auth')

const isOfClients = (routeKeys: RouteKeys): boolean =>
  eventsOf(routeKeys).some((name) => EVENTS[name].category !== 'auth')

const hasTable = (routeKeys: RouteKeys): boolean =>
  eventsOf(routeKeys).some((name) => EVENTS[name].tableScope === true)

/** Operations that return rows, which a filter judges. */
export const hasRows = (routeKeys: RouteKeys): boolean =>
  eventsOf(routeKeys).some((name) => EVENTS[name].category === 'gateway')

/** Throws when the parts contradict each other: such a webhook would get nothing. */
export function requireSubscription({
  routeKeys,
  clientName,
  tableName,
  filter,
}: Omit<Subscription, 'id'>): void {
  const field = routeKeys.length === 1 ? 'route_key' : 'route_keys'
  const unknown = routeKeys.find((routeKey) => !ROUTE_KEYS.includes(routeKey))
  if (unknown !== undefined) throw notARouteKey(field, unknown)
  if (isOfUsers(routeKeys) && isOfClients(routeKeys))
    throw refused(field, 'Events of users belong to no client', 'Make a webhook of their own for them')
  if (isOfUsers(routeKeys) && clientName !== null)
    throw refused('client_name', 'Events of users belong to no client', 'Leave client_name out')
  if (!isOfUsers(routeKeys) && clientName === null)
    throw refused('client_name', 'This webhook needs a client', 'Set client_name')
  if (tableName !== null && !hasTable(routeKeys))
    throw refused('table_name', `${routeKeys.join(', ')} has no table`, 'Leave table_name out')
  if (filter !== null && !hasRows(routeKeys))
    throw refused('filter', `${routeKeys.join(', ')} has no rows`, 'Leave filter out')
}

function notARouteKey(field: string, given: string) {
  const meant = closestName(given, ROUTE_KEYS)
  return refused(
    field,
    `${JSON.stringify(given.slice(0, 100))} is not a route key`,
    `${meant === undefined ? '' : `Did you mean ${meant}? `}List them with GET /admin/webhooks/events`,
  )
}

/** `schema.table`, as events name a table. */
export function fullTableName(name: string): string {
  const { schema, table } = readTable({ table_name: name })
  return `${schema}.${table}`
}

/** The table of such a name. A dot inside of one of its parts is in `table` then. */
export function tableNamed(fullName: string): TableName {
  const dot = fullName.indexOf('.')
  return { schema: fullName.slice(0, dot), table: fullName.slice(dot + 1) }
}

export const refused = (field: string, message: string, hint: string) =>
  fail('invalid_webhook', { message, hint, details: { field } })
