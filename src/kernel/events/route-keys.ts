import { EVENTS, type EventName } from '../events.ts'

export const EVENT_NAMES = Object.keys(EVENTS) as readonly EventName[] // keys of a literal

const CATEGORIES = new Set(EVENT_NAMES.map((name) => EVENTS[name].category))

/** Names of events and of sets of them: `*`, `gateway.*`, `gateway_insert`. */
export const ROUTE_KEYS: readonly string[] = [
  '*',
  ...[...CATEGORIES].map((category) => `${category}.*`),
  ...EVENT_NAMES,
]

/** The events that one of the route keys names; none for other words. */
export const eventsOf = (routeKeys: readonly string[]): readonly EventName[] =>
  EVENT_NAMES.filter((name) => routeKeys.some((routeKey) => isNamed(name, routeKey)))

/** `*` is without the events of users, which belong to no client. */
function isNamed(name: EventName, routeKey: string): boolean {
  const { category } = EVENTS[name]
  return routeKey === name || routeKey === `${category}.*` || (routeKey === '*' && category !== 'auth')
}
