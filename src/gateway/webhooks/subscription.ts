import { readTable } from '#databases/request/table-name.ts'
import { closestName } from '#kernel/closest-name.ts'
import { eventsOf, ROUTE_KEYS } from '#kernel/events/route-keys.ts'
import type { Subscription } from '#kernel/events/subscriptions.ts'
import { EVENTS } from '#kernel/events.ts'
import { fail } from '../errors.ts'

export const isOfUsers = (routeKey: string): boolean =>
  eventsOf(routeKey).some((name) => EVENTS[name].category === 'auth')

const hasTable = (routeKey: string): boolean =>
  eventsOf(routeKey).some((name) => EVENTS[name].tableScope === true)

/** Operations that return rows, which a filter judges. */
const hasRows = (routeKey: string): boolean =>
  eventsOf(routeKey).some((name) => EVENTS[name].category === 'gateway')

/** Throws when the parts contradict each other: such a webhook would get nothing. */
export function requireSubscription({
  routeKey,
  clientName,
  tableName,
  filter,
}: Omit<Subscription, 'id'>): void {
  if (!ROUTE_KEYS.includes(routeKey)) {
    const meant = closestName(routeKey, ROUTE_KEYS)
    throw refused(
      'route_key',
      `${JSON.stringify(routeKey.slice(0, 100))} is not a route key`,
      `${meant === undefined ? '' : `Did you mean ${meant}? `}List them with GET /admin/webhooks/events`,
    )
  }
  if (isOfUsers(routeKey) && clientName !== null)
    throw refused('client_name', 'Events of users belong to no client', 'Leave client_name out')
  if (!isOfUsers(routeKey) && clientName === null)
    throw refused('client_name', 'This webhook needs a client', 'Set client_name')
  if (tableName !== null && !hasTable(routeKey))
    throw refused('table_name', `${routeKey} has no table`, 'Leave table_name out')
  if (filter !== null && !hasRows(routeKey))
    throw refused('filter', `${routeKey} has no rows`, 'Leave filter out')
}

/** `schema.table`, as events name a table. */
export function fullTableName(name: string): string {
  const { schema, table } = readTable({ table_name: name })
  return `${schema}.${table}`
}

const refused = (field: string, message: string, hint: string) =>
  fail('invalid_webhook', { message, hint, details: { field } })
